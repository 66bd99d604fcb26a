/* SPDX-License-Identifier: MIT */
/*
 * The transport that encrypts: OpenSSL turns bytes into records and back, and
 * ciphertext.c moves these.
 *
 * Invariant: at most SEND_MAX bytes are encrypted and not yet handed to the
 * kernel, and they are sent before anything else. A record has a number, so it
 * can be neither taken back nor overtaken: bytes count as sent once they are
 * encrypted. When a receive returns, neither OpenSSL nor ciphertext.c holds
 * data that could be read, or `pending` says so.
 */
#include "net/tls/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/url.h"

#define RECORD_MAX 16384
/* What is encrypted before one call of send(): two records, which take 32 KB
 * with what TLS adds. One would cut the requests of 128 locks in two, and the
 * server would be woken up for each part. More is not encrypted ahead: if the
 * connection is lost, the outcome of all that is encrypted is unknown. */
#define SEND_MAX (2 * RECORD_MAX - 512)
/* How often one call reads from a peer that never stops sending. */
#define READS_MAX 16
/* A peer that makes OpenSSL answer without end, and does not read, may leave us
 * with so many bytes. What was sent takes two thirds of it. */
#define HELD_MAX 49152

/* Each thread has a queue of errors, and the program's own calls of OpenSSL may
 * have left some there. Clearing an empty one takes longer than looking. */
static void clear_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* ----------------------------------------------------------------- opening */

/* Remembers the first certificate that cannot be trusted, and why. */
static int note_refusal(int ok, X509_STORE_CTX *store)
{
    SSL *ssl =
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct session *s = SSL_get_app_data(ssl);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);

    if (!ok && !s->refused && certificate && X509_up_ref(certificate)) {
        s->refused = certificate;
        s->refusal = X509_STORE_CTX_get_error(store);
    }
    return ok;
}

static bool is_address(const char *name)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, name, bytes) == 1 ||
           inet_pton(AF_INET6, name, bytes) == 1;
}

/* The name without what does not belong to it in a certificate: the zone of an
 * IPv6 address, or the dot behind a full name. */
static void bare_name(const struct target *to, char *name, size_t room)
{
    const char *from =
        to->settings->sni ? to->settings->sni : to->address->host;
    size_t len = strcspn(from, "%");

    if (len > 1 && from[len - 1] == '.')
        len--;
    if (len >= room)
        len = room - 1;
    memcpy(name, from, len);
    name[len] = '\0';
}

/* Says which name to send (RFC 6066: no address) and to verify. */
static bool set_name(struct session *s)
{
    char name[256];
    bool ok = true;
    bool checked = s->to->settings->verify == TLS_VERIFY_FULL;

    bare_name(s->to, name, sizeof(name));
    if (is_address(name))
        return !checked ||
               X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), name) == 1;
    ok = SSL_set_tlsext_host_name(s->ssl, name) == 1;
    SSL_set_hostflags(s->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return ok && (!checked || SSL_set1_host(s->ssl, name) == 1);
}

static void free_session(struct session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    ciphertext_close(&s->ciphertext);
    X509_free(s->refused);
    free(s);
}

static struct session *new_session(SSL_CTX *ctx, const struct target *to)
{
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->to = to;
    s->ssl = SSL_new(ctx);
    if (!s->ssl || !ciphertext_open(&s->ciphertext, s->ssl)) {
        free_session(s);
        return NULL;
    }
    SSL_set_app_data(s->ssl, s);
    SSL_set_connect_state(s->ssl);
    if (to->settings->verify != TLS_VERIFY_NONE)
        SSL_set_verify(s->ssl, SSL_VERIFY_PEER, note_refusal);
    if (set_name(s))
        return s;
    free_session(s);
    return NULL;
}

static bool tls_open(
    struct transport *t, const struct target *to, struct text *error)
{
    SSL_CTX *ctx = tls_context(to->tls, error);

    if (!ctx) {
        t->fault = FAULT_CREDENTIALS;
        return false;
    }
    clear_errors();
    t->own = new_session(ctx, to);
    t->silence = to->settings->to_sentinels
                     ? "no answer to the TLS handshake (as from a Sentinel's "
                       "plain port: if it is one, add sentinel_tls=0)"
                     : "no answer to the TLS handshake (as from a plain Redis "
                       "port: if it is one, write redis://)";
    if (!t->own)
        text_set(error, "out of memory: cannot prepare TLS");
    return t->own;
}

/* --------------------------------------------- what is common to the rest */

/* After an error of OpenSSL, which ends the session: notes why, if it is known.
 */
static void end_session(struct transport *t)
{
    struct session *s = t->own;

    unsigned long code = ERR_peek_error();

    s->broken = true;
    t->fault = tls_explain_alert(s, code, &t->why);
    if (t->fault == FAULT_NONE)
        t->why = tls_explain_loss(code);
    clear_errors();
    (void)tls_flush(t);
    t->wants_write = false;
    errno = EPROTO;
}

/* May there be data, or the end, in what has been read? */
static bool has_more(const struct session *s)
{
    return SSL_has_pending(s->ssl) || buf_len(&s->ciphertext.in) > 0;
}

/* Is there data, or the end, in what has been read? */
static bool look_ahead(struct transport *t)
{
    struct session *s = t->own;
    size_t count;
    char byte;

    clear_errors();
    if (SSL_peek_ex(s->ssl, &byte, 1, &count) == 1)
        return true;
    switch (SSL_get_error(s->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return false;
    case SSL_ERROR_ZERO_RETURN:
        s->over = true;
        return true;
    default:
        end_session(t);
        return true;
    }
}

/* Sends what OpenSSL has to say to what was read. If that fails, the next send
 * reports it: what was read counts. */
static void answer(struct transport *t)
{
    struct session *s = t->own;

    if (s->broken)
        return;
    t->wants_write = !tls_flush(t) || t->wants_write;
    if (buf_len(&s->ciphertext.out) <= HELD_MAX)
        return;
    s->broken = true;
    t->wants_write = false;
    t->why = "connection lost: the server demands TLS answers, but does not "
             "read them";
}

/* -------------------------------------------------------------- handshaking */

static enum transport_step shake_lost(
    struct transport *t, const char *what, struct text *error)
{
    int cause = errno;

    text_set(error, what);
    text_add(error, ": ");
    text_add(
        error, cause ? strerror(cause) : "the server closed the connection");
    t->fault = FAULT_UNREACHABLE;
    return TRANSPORT_FAILED;
}

static enum transport_step shake_failed(struct transport *t, struct text *error)
{
    struct session *s = t->own;

    s->broken = true;
    t->fault = tls_explain_handshake(s, ERR_peek_error(), error);
    clear_errors();
    /* A certificate that OpenSSL had no memory to look at stays invalid to it:
     * that may be the CA's in the context. */
    tls_read_again(s->to->tls);
    (void)tls_flush(t); /* tells the peer why */
    return TRANSPORT_FAILED;
}

static enum transport_step tls_handshake(
    struct transport *t, struct text *error)
{
    struct session *s = t->own;

    t->wants_read = false;
    for (int reads = 0;; reads++) {
        clear_errors();
        int rc = SSL_do_handshake(s->ssl);
        int cause = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, rc);
        if (cause != SSL_ERROR_NONE && cause != SSL_ERROR_WANT_READ)
            return shake_failed(t, error);
        if (!tls_flush(t))
            return shake_lost(t, "the TLS handshake was cut off", error);
        if (cause == SSL_ERROR_NONE) {
            t->pending = has_more(s) && look_ahead(t);
            answer(t);
            return TRANSPORT_READY;
        }
        if (reads == READS_MAX) /* what was read has been used */
            break;
        ssize_t n = tls_fill(t);
        if (s->peer_has_sent)
            t->silence = "the TLS handshake was not completed";
        if (n < 0)
            return shake_lost(t, "the TLS handshake was cut off", error);
        if (n == 0)
            break;
    }
    t->wants_read = true;
    return TRANSPORT_WAITS;
}

/* --------------------------------------------------- sending and receiving */

/* Encrypts as much as one send may take. -1: an error. */
static ssize_t encrypt(struct transport *t, const char *bytes, size_t len)
{
    struct session *s = t->own;
    size_t total = 0, count = 0;

    if (len > SEND_MAX)
        len = SEND_MAX;
    while (total < len) {
        size_t part = len - total;
        if (part > RECORD_MAX)
            part = RECORD_MAX;
        clear_errors();
        if (SSL_write_ex(s->ssl, bytes + total, part, &count) == 1) {
            total += count;
            continue;
        }
        /* Of a ticket, or other words of TLS, only a part has come. */
        t->wants_read = SSL_get_error(s->ssl, 0) == SSL_ERROR_WANT_READ;
        if (!t->wants_read)
            end_session(t);
        break;
    }
    return total > 0 || !s->broken ? (ssize_t)total : -1;
}

static ssize_t tls_send(struct transport *t, const void *bytes, size_t len)
{
    struct session *s = t->own;

    if (s->broken) {
        errno = EPROTO;
        return -1;
    }
    if (!tls_flush(t))
        return -1;
    if (t->wants_write || len == 0)
        return 0;
    ssize_t n = encrypt(t, bytes, len);
    /* If the kernel refuses, it has taken nothing of these bytes. */
    return n <= 0 || s->broken || tls_flush(t) ? n : -1;
}

/* Decrypts up to room bytes. *over: the peer said goodbye. -1: an error. */
static ssize_t decrypt(
    struct transport *t, char *bytes, size_t room, bool *over)
{
    struct session *s = t->own;
    size_t total = 0, count = 0;

    while (total < room) {
        clear_errors();
        if (SSL_read_ex(s->ssl, bytes + total, room - total, &count) == 1) {
            total += count;
            /* Another call would find nothing, and take as long as this one. */
            if (!has_more(s))
                break;
            continue;
        }
        switch (SSL_get_error(s->ssl, 0)) {
        case SSL_ERROR_WANT_READ:
            break;
        case SSL_ERROR_ZERO_RETURN:
            *over = true;
            break;
        default:
            end_session(t);
            return total > 0 ? (ssize_t)total : -1;
        }
        break;
    }
    return (ssize_t)total;
}

/* Delivers what was decrypted before the end of the stream; the next receive
 * then reports the end. */
static ssize_t tls_receive(struct transport *t, void *bytes, size_t room)
{
    struct session *s = t->own;
    bool over = s->over;
    ssize_t got = 0;

    if (s->broken) {
        errno = EPROTO;
        return -1;
    }
    if (!t->pending && !over) {
        got = tls_fill(t);
        if (got < 0 && errno != 0)
            return -1;
        over = got < 0;
    }
    ssize_t n = decrypt(t, bytes, room, &over);
    if (n < 0)
        return -1;
    bool more = (size_t)n == room && look_ahead(t);
    answer(t);
    s->over = s->over || over;
    t->pending = more || s->broken || s->over;
    if (n == 0 && over) {
        errno = 0;
        return -1;
    }
    return n;
}

/* Session tickets and new keys make the socket readable without any data for
 * us, so the only way to know is to decrypt. */
static enum transport_news tls_news(struct transport *t)
{
    struct session *s = t->own;
    struct pollfd look = {.fd = t->fd, .events = POLLIN | POLLRDHUP};

    if (poll(&look, 1, 0) <= 0 || !look.revents)
        return TRANSPORT_QUIET;
    if (look.revents & ~POLLIN) /* whatever there is to receive before it */
        return TRANSPORT_OVER;
    for (int reads = 0; reads < READS_MAX && !s->broken; reads++) {
        ssize_t n = tls_fill(t);
        if (n < 0)
            break;
        t->pending = n > 0 && look_ahead(t);
        answer(t);
        if (n == 0 && !s->broken)
            return TRANSPORT_QUIET;
        if (t->pending)
            return s->broken || s->over ? TRANSPORT_OVER : TRANSPORT_TALKS;
    }
    return TRANSPORT_OVER;
}

/* ------------------------------------------------------------------ the end */

static void tls_close(struct transport *t)
{
    struct session *s = t->own;

    clear_errors();
    if (!s->broken && !t->wants_write && SSL_is_init_finished(s->ssl)) {
        (void)SSL_shutdown(s->ssl);
        (void)tls_flush(t);
    }
    clear_errors();
    free_session(s);
    t->own = NULL;
}

const struct transport_kind transport_tls = {.open = tls_open,
    .handshake = tls_handshake,
    .send = tls_send,
    .receive = tls_receive,
    .news = tls_news,
    .close = tls_close,
    .facts = tls_facts};
