/* SPDX-License-Identifier: MIT */
/*
 * What errors of TLS are explained with: alerts that no redis-server sends, and
 * the difference between a handshake and a connection that was secure.
 */
#include "support/test.h"

#include <openssl/err.h>

#include "net/tls/parts.h"
#include "config/url.h"

static unsigned long code_of(int reason)
{
    return ERR_PACK(ERR_LIB_SSL, 0, reason);
}

static const struct {
    int reason;
    enum fault fault;
    const char *words;
} meanings[] = {
    {SSL_R_WRONG_VERSION_NUMBER, FAULT_TLS, "does not speak TLS on this port"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, FAULT_TLS, "does not speak TLS"},
    {SSL_R_HTTP_REQUEST, FAULT_TLS, "does not speak TLS"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, FAULT_TLS, "no TLS version in common"},
    {SSL_R_UNSUPPORTED_PROTOCOL, FAULT_TLS, "no TLS version in common"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, FAULT_TLS, "no cipher in common"},
    {SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, FAULT_TLS, "no cipher in common"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, FAULT_TLS, "set it with sni="},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, FAULT_CERTIFICATE,
        "add cert= and key="},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, FAULT_CERTIFICATE, "(unknown CA)"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, FAULT_CERTIFICATE, "(bad certificate)"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, FAULT_CERTIFICATE,
        "(not for clients)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, FAULT_CERTIFICATE, "(revoked)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, FAULT_CERTIFICATE, "(expired)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, FAULT_CERTIFICATE,
        "(unknown certificate)"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, FAULT_CERTIFICATE, "(access denied)"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, FAULT_CERTIFICATE, "(its signature)"},
};

#define MEANINGS (sizeof(meanings) / sizeof(meanings[0]))

static void errors_of_a_handshake(void **state)
{
    (void)state;
    struct session session = {.ssl = NULL};
    struct text text;
    for (size_t i = 0; i < MEANINGS; i++) {
        enum fault fault =
            tls_explain_handshake(&session, code_of(meanings[i].reason), &text);
        assert_int_equal(fault, meanings[i].fault);
        assert_contains(text.data, meanings[i].words);
    }
}

/* Only the refusal of a certificate may come as late as that. */
static void errors_of_a_secure_connection(void **state)
{
    (void)state;
    struct session session = {.ssl = NULL};
    for (size_t i = 0; i < MEANINGS; i++) {
        const char *why = NULL;
        enum fault fault =
            tls_explain_alert(&session, code_of(meanings[i].reason), &why);
        if (meanings[i].fault == FAULT_CERTIFICATE) {
            assert_int_equal(fault, FAULT_CERTIFICATE);
            assert_contains(why, meanings[i].words);
        } else {
            assert_int_equal(fault, FAULT_NONE);
            assert_null(why);
        }
    }
}

/* TLS 1.2 has one alert for a missing certificate and for much else. */
static void a_certificate_was_asked_for(void **state)
{
    (void)state;
    struct session session = {.cert_requested = true};
    struct text text;
    unsigned long code = code_of(SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
    assert_int_equal(
        tls_explain_handshake(&session, code, &text), FAULT_CERTIFICATE);
    assert_contains(text.data, "requires a client certificate");
}

static void other_errors(void **state)
{
    (void)state;
    struct session session = {.ssl = NULL};
    struct text text;
    const char *why = NULL;
    unsigned long code = code_of(SSL_R_UNEXPECTED_MESSAGE);
    unsigned long other = ERR_PACK(ERR_LIB_X509, 0, SSL_R_HTTP_REQUEST);
    assert_int_equal(tls_explain_handshake(&session, code, &text), FAULT_TLS);
    assert_string_equal(
        text.data, "the TLS handshake failed: unexpected message");
    assert_int_equal(tls_explain_alert(&session, code, &why), FAULT_NONE);
    assert_int_equal(tls_explain_alert(&session, 0, &why), FAULT_NONE);
    assert_int_equal(tls_explain_handshake(&session, other, &text), FAULT_TLS);
    assert_contains(text.data, "the TLS handshake failed: ");
    assert_int_equal(tls_explain_handshake(&session, 0, &text), FAULT_TLS);
    assert_string_equal(text.data, "the TLS handshake failed: unknown error");
}

/* A certificate's text is the peer's: it cannot forge lines of a message. */
static void text_of_a_certificate(void **state)
{
    (void)state;
    struct endpoint of = {.address.host = (char *)"db.example"};
    struct target to = target_of(&of);
    struct session session = {.to = &to, .refused = X509_new()};
    struct text text;
    X509_NAME *name = X509_get_subject_name(session.refused);
    static const unsigned char forged[] = "x\n\033[2Jy";
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, forged, -1, -1, 0);
    session.refusal = X509_V_ERR_HOSTNAME_MISMATCH;
    assert_int_equal(tls_explain_handshake(&session, 0, &text), FAULT_TLS);
    assert_contains(text.data,
        "the certificate is for x\\x0a\\x1b[2Jy, not for db.example; ");
    session.refusal = X509_V_ERR_PATH_LENGTH_EXCEEDED;
    assert_int_equal(tls_explain_handshake(&session, 0, &text), FAULT_TLS);
    assert_string_equal(text.data,
        "the server's certificate cannot be trusted: path length constraint "
        "exceeded");
    X509_free(session.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_a_handshake),
        cmocka_unit_test(errors_of_a_secure_connection),
        cmocka_unit_test(a_certificate_was_asked_for),
        cmocka_unit_test(other_errors),
        cmocka_unit_test(text_of_a_certificate),
    };
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
    return cmocka_run_group_tests_name("tls_words", tests, NULL, NULL);
}
