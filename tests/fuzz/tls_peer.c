/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL as a server in memory. Keys are of the curve Ed25519: signatures of
 * one length keep a handshake's records where they were, so that an input can
 * be repeated.
 */
#include "fuzz/tls_peer.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

#define DAY_S 86400L
#define SMALL 512
#define UPDATES_MAX 4096 /* of a connection: they take long */

/* ------------------------------------------------------------ certificates */

static struct {
    X509 *certificate;
    EVP_PKEY *key;
} pairs[PEERS + 1]; /* the last: the CA */

static char ca_path[64];
static SSL_CTX *contexts[2][PEERS];

static void extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *made = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    CHECK(made && X509_add_ext(certificate, made, -1) == 1);
    X509_EXTENSION_free(made);
}

/* issuer: an index of pairs, or its own. */
static void make_pair(int which, int issuer, const char *host)
{
    X509 *x = X509_new();
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    CHECK(x && key);
    pairs[which].certificate = x;
    pairs[which].key = key;
    X509_NAME *name = X509_get_subject_name(x);
    CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
              (const unsigned char *)(host ? "server" : "CA"), -1, -1, 0) == 1);
    X509 *signer = pairs[issuer].certificate;
    CHECK(X509_set_version(x, X509_VERSION_3) == 1);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(x), which + 1) == 1);
    CHECK(X509_set_issuer_name(x, X509_get_subject_name(signer)) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S) != NULL);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(x), DAY_S) != NULL);
    CHECK(X509_set_pubkey(x, key) == 1);
    extend(x, signer, NID_basic_constraints,
        host ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (host)
        extend(x, signer, NID_subject_alt_name, host);
    CHECK(X509_sign(x, pairs[issuer].key, NULL) > 0);
}

/* A ticket is longer than a small record. */
static int fill_ticket(SSL *ssl, void *arg)
{
    static const char bytes[2 * SMALL];

    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(
        SSL_get_session(ssl), bytes, sizeof(bytes));
}

static SSL_CTX *make_context(int version, enum peer_identity who)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    CHECK(ctx != NULL);
    CHECK(SSL_CTX_set_min_proto_version(ctx, version) == 1);
    CHECK(SSL_CTX_set_max_proto_version(ctx, version) == 1);
    CHECK(SSL_CTX_use_certificate(ctx, pairs[who].certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(ctx, pairs[who].key) == 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_ticket_cb(ctx, fill_ticket, NULL, NULL);
    return ctx;
}

static void make_all(void)
{
    int fd = memfd_create("ca", MFD_CLOEXEC);

    make_pair(PEERS, PEERS, NULL);
    make_pair(PEER_GOOD, PEERS, "DNS:localhost");
    make_pair(PEER_OTHER_HOST, PEERS, "DNS:elsewhere.example");
    make_pair(PEER_FOREIGN, PEER_FOREIGN, "DNS:localhost");
    for (enum peer_identity who = 0; who < PEERS; who++) {
        contexts[0][who] = make_context(TLS1_2_VERSION, who);
        contexts[1][who] = make_context(TLS1_3_VERSION, who);
    }
    FILE *file = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    CHECK(file && PEM_write_X509(file, pairs[PEERS].certificate) == 1);
    CHECK(fclose(file) == 0);
    snprintf(ca_path, sizeof(ca_path), "/proc/self/fd/%d", fd);
}

const char *peer_ca(void)
{
    if (!ca_path[0])
        make_all();
    return ca_path;
}

/* --------------------------------------------------------------- the server */

uint8_t peer_says(size_t n)
{
    return (uint8_t)(n * 13 + n / 256);
}

uint8_t client_says(size_t n)
{
    static const char text[] = "AUTH the-password ";

    return (uint8_t)text[n % (sizeof(text) - 1)];
}

void peer_open(
    struct tls_peer *p, int version, enum peer_identity who, bool small)
{
    (void)peer_ca();
    *p = (struct tls_peer){
        .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem())};
    p->ssl = SSL_new(contexts[version == TLS1_3_VERSION][who]);
    CHECK(p->ssl && p->in && p->out);
    SSL_set_bio(p->ssl, p->in, p->out);
    SSL_set_accept_state(p->ssl);
    if (small)
        CHECK(SSL_set_max_send_fragment(p->ssl, SMALL) == 1);
}

void peer_close(struct tls_peer *p)
{
    SSL_free(p->ssl);
    free(p->up.bytes);
    free(p->down.bytes);
    ERR_clear_error();
}

static void take_output(struct tls_peer *p)
{
    char *bytes;
    long len = BIO_get_mem_data(p->out, &bytes);

    wire_add(&p->down, bytes, (size_t)len);
    (void)BIO_reset(p->out);
}

/* After a call of OpenSSL that returned rc. */
static void note_result(struct tls_peer *p, int rc)
{
    int cause = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(p->ssl, rc);

    if (cause == SSL_ERROR_SSL || cause == SSL_ERROR_SYSCALL)
        p->failed = true;
    ERR_clear_error();
    take_output(p);
}

void peer_step(struct tls_peer *p)
{
    uint8_t bytes[4096];
    size_t count;

    CHECK(BIO_write(p->in, p->up.bytes, (int)p->up.len) == (int)p->up.len ||
          p->up.len == 0);
    p->up.len = 0;
    if (p->failed)
        return;
    ERR_clear_error();
    int rc;
    while ((rc = SSL_read_ex(p->ssl, bytes, sizeof(bytes), &count)) == 1)
        for (size_t i = 0; i < count; i++)
            CHECK(bytes[i] == client_says(p->heard++));
    note_result(p, rc);
}

static bool is_able(const struct tls_peer *p, int version)
{
    return !p->failed && !p->over && SSL_is_init_finished(p->ssl) &&
           SSL_version(p->ssl) == version;
}

void peer_write(struct tls_peer *p, size_t len)
{
    uint8_t bytes[40000];
    size_t count;

    if (len > sizeof(bytes))
        len = sizeof(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = peer_says(p->written + i);
    if (!is_able(p, SSL_version(p->ssl)) || len == 0)
        return;
    ERR_clear_error();
    int rc = SSL_write_ex(p->ssl, bytes, len, &count);
    if (rc == 1)
        p->written += count;
    note_result(p, rc);
}

void peer_update_keys(struct tls_peer *p, size_t times, bool both)
{
    int kind = both ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED;

    for (; times > 0 && is_able(p, TLS1_3_VERSION); times--) {
        if (p->updates++ >= UPDATES_MAX)
            return;
        ERR_clear_error();
        if (SSL_key_update(p->ssl, kind) == 1)
            note_result(p, SSL_do_handshake(p->ssl));
    }
}

void peer_send_ticket(struct tls_peer *p)
{
    if (!is_able(p, TLS1_3_VERSION))
        return;
    ERR_clear_error();
    if (SSL_new_session_ticket(p->ssl) == 1)
        note_result(p, SSL_do_handshake(p->ssl));
}

void peer_ask_anew(struct tls_peer *p)
{
    if (!is_able(p, TLS1_2_VERSION))
        return;
    ERR_clear_error();
    if (SSL_renegotiate(p->ssl) == 1)
        note_result(p, SSL_do_handshake(p->ssl));
}

void peer_say_goodbye(struct tls_peer *p)
{
    ERR_clear_error();
    if (!p->failed && SSL_is_init_finished(p->ssl))
        (void)SSL_shutdown(p->ssl);
    p->over = true;
    ERR_clear_error();
    take_output(p);
}
