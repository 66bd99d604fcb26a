/* SPDX-License-Identifier: MIT */
/*
 * Explains errors of TLS: what is wrong, and what to do about it.
 *
 * Invariant: text of a certificate cannot forge a message. It need not be
 * searched for secrets: a server shows it before anything is sent to it.
 */
#include "net/tls/parts.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "base/text.h"
#include "config/url.h"

/* A message has little room, and the remedy comes last. */
#define NAME_SHOWN 64
#define NAMES_SHOWN 3

/* What OpenSSL's reasons mean. Alerts of the peer are reasons above 1000. */
static const struct meaning {
    int reason;
    enum fault fault;
    const char *words;
} meanings[] = {
#define NO_TLS                                                                 \
    "the peer does not speak TLS on this port; if it is a plain port, write "  \
    "redis:// instead of rediss://"
    {SSL_R_WRONG_VERSION_NUMBER, FAULT_TLS, NO_TLS},
    {SSL_R_PACKET_LENGTH_TOO_LONG, FAULT_TLS, NO_TLS},
    {SSL_R_HTTP_REQUEST, FAULT_TLS, NO_TLS},
#define NO_VERSION                                                             \
    "the server and this client have no TLS version in common; enable TLS "    \
    "1.2 or 1.3 at the server (tls-protocols), and see tls_min"
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, FAULT_TLS, NO_VERSION},
    {SSL_R_UNSUPPORTED_PROTOCOL, FAULT_TLS, NO_VERSION},
    {SSL_R_WRONG_SSL_VERSION, FAULT_TLS, NO_VERSION},
    {SSL_R_NO_PROTOCOLS_AVAILABLE, FAULT_TLS, NO_VERSION},
#define NO_CIPHER                                                              \
    "the server refused the TLS handshake; perhaps there is no cipher in "     \
    "common: see tls_ciphers, tls_ciphersuites, and the server's settings"
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, FAULT_TLS, NO_CIPHER},
    {SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, FAULT_TLS, NO_CIPHER},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, FAULT_TLS,
        "the server does not know the name that it was asked for (SNI); set "
        "it with sni="},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, FAULT_CERTIFICATE,
        "the server requires a client certificate; add cert= and key="},
#define NOT_ACCEPTED "the server does not accept the client certificate "
#define CHECK_CERT "; check cert=, and the CA that the server trusts"
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(unknown CA)" CHECK_CERT},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(bad certificate)" CHECK_CERT},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(not for clients)" CHECK_CERT},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(revoked)" CHECK_CERT},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(expired); renew it"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(unknown certificate)" CHECK_CERT},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(access denied)" CHECK_CERT},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, FAULT_CERTIFICATE,
        NOT_ACCEPTED "(its signature)" CHECK_CERT},
};

static const struct meaning *find_meaning(
    const struct session *s, unsigned long code)
{
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : -1;

    /* TLS 1.2 has no alert of its own for this. */
    if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE && s->cert_requested)
        reason = SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].reason == reason)
            return &meanings[i];
    return NULL;
}

enum fault tls_explain_alert(
    const struct session *s, unsigned long code, const char **why)
{
    const struct meaning *meaning = find_meaning(s, code);

    /* What else goes wrong in a secure connection is no matter of settings. */
    if (!meaning || meaning->fault != FAULT_CERTIFICATE)
        return FAULT_NONE;
    *why = meaning->words;
    return meaning->fault;
}

const char *tls_explain_loss(unsigned long code)
{
    int reason = ERR_GET_REASON(code);

    if (reason == ERR_R_MALLOC_FAILURE)
        return "connection lost: out of memory for TLS";
    if (reason > SSL_AD_REASON_OFFSET)
        return "connection lost: the server reported an error of TLS";
    return "connection lost: what the server sent is not valid TLS";
}

/* ------------------------------------------------------- a certificate refused
 */

static void add_name(struct text *out, const void *name, int len)
{
    text_add_foreign_raw(
        out, (struct slice){name, len > 0 ? (size_t)len : 0}, NAME_SHOWN);
}

/* The common name; without one, the organization. */
static void add_person(struct text *out, const X509_NAME *name)
{
    static const int kinds[] = {NID_commonName, NID_organizationName};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int at = X509_NAME_get_index_by_NID(name, kinds[i], -1);
        if (at < 0)
            continue;
        const ASN1_STRING *value =
            X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
        add_name(out, ASN1_STRING_get0_data(value), ASN1_STRING_length(value));
        return;
    }
    text_add(out, "(no name)");
}

static bool add_address(struct text *out, const ASN1_OCTET_STRING *bytes)
{
    int len = ASN1_STRING_length(bytes);
    char words[INET6_ADDRSTRLEN];

    if ((len != 4 && len != 16) ||
        !inet_ntop(len == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes),
            words, sizeof(words)))
        return false;
    text_add(out, words);
    return true;
}

/* The names that the certificate is for. */
static void add_names(struct text *out, X509 *certificate)
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = names ? sk_GENERAL_NAME_num(names) : 0, shown = 0;

    for (int i = 0; i < count && shown < NAMES_SHOWN; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS && name->type != GEN_IPADD)
            continue;
        text_add(out, shown++ ? ", " : "");
        if (name->type == GEN_DNS)
            add_name(out, ASN1_STRING_get0_data(name->d.dNSName),
                ASN1_STRING_length(name->d.dNSName));
        else
            (void)add_address(out, name->d.iPAddress);
    }
    if (!shown)
        add_person(out, X509_get_subject_name(certificate));
    else if (shown < count)
        text_add(out, ", ...");
    GENERAL_NAMES_free(names);
}

static void add_date(struct text *out, const ASN1_TIME *when)
{
    struct tm parts;
    char date[32] = "?";

    if (ASN1_TIME_to_tm(when, &parts) == 1)
        strftime(date, sizeof(date), "%Y-%m-%d", &parts);
    text_add(out, date);
}

/* Who does not know the CA: "the file X", or the system. */
static void add_trust(struct text *out, const struct settings *set)
{
    const char *path = set->cacert ? set->cacert : set->cacertdir;

    text_add(out, path ? "" : "the system");
    if (path)
        text_add_foreign(out, slice_of(path));
    text_add(out, " does not know; name the file of its CA with cacert=");
}

static void explain_refusal(const struct session *s, struct text *out)
{
    const struct settings *set = s->to->settings;
    X509 *certificate = s->refused;

    switch (s->refusal) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        text_set(out, "the certificate of '");
        add_person(out, X509_get_subject_name(certificate));
        text_add(out, "' expired on ");
        add_date(out, X509_get0_notAfter(certificate));
        text_add(out, "; renew it at the server");
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        text_set(out, "the certificate of '");
        add_person(out, X509_get_subject_name(certificate));
        text_add(out, "' is valid from ");
        add_date(out, X509_get0_notBefore(certificate));
        text_add(out, " on; check the clock of this machine");
        return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        text_set(out, "the certificate is for ");
        add_names(out, certificate);
        text_add(out, ", not for ");
        text_add_foreign(
            out, slice_of(set->sni ? set->sni : s->to->address->host));
        text_add(
            out, set->to_sentinels
                     ? "; if that is the right Sentinel, write a name of "
                       "the certificate in the URL (sni= is for the "
                       "servers only)"
                     : "; if that is the right server, add sni=NAME with a "
                       "name of the certificate (redis-cli does not check "
                       "names)");
        return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        text_set(out, "the certificate is self-signed, and ");
        add_trust(out, set);
        return;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        text_set(out, "the certificate is signed by '");
        add_person(out, X509_get_issuer_name(certificate));
        text_add(out, "', which ");
        add_trust(out, set);
        text_add(out, " (or, if that is an intermediate CA, let the server "
                      "send its certificate)");
        return;
    case X509_V_ERR_INVALID_PURPOSE:
        text_set(out, "the certificate is not one for servers; renew it at the "
                      "server, for server authentication");
        return;
    default:
        text_set(out, "the server's certificate cannot be trusted: ");
        text_add(out, X509_verify_cert_error_string(s->refusal));
    }
}

enum fault tls_explain_handshake(
    const struct session *s, unsigned long code, struct text *out)
{
    const struct meaning *meaning = find_meaning(s, code);

    if (s->refused) {
        explain_refusal(s, out);
        return FAULT_TLS;
    }
    if (meaning) {
        text_set(out, meaning->words);
        return meaning->fault;
    }
    const char *reason = ERR_reason_error_string(code);
    text_set(out, "the TLS handshake failed: ");
    text_add(out, reason ? reason : "unknown error");
    return FAULT_TLS;
}
