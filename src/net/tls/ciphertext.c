/* SPDX-License-Identifier: MIT */
/*
 * The encrypted bytes of a connection, between OpenSSL and the descriptor:
 * OpenSSL writes them to one queue and reads them from another, by a BIO of our
 * own; send() and recv() move them here. OpenSSL's memory BIOs would work too,
 * but copy each byte twice and overwrite it once: 900 more instructions for a
 * message.
 *
 * Invariant: OpenSSL never sees the descriptor. A queue that cannot grow keeps
 * its content: then a receive reads nothing, and OpenSSL reports a lack of
 * memory.
 */
#include "net/tls/parts.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

/* What one receive takes from the socket: about a record. */
#define RECEIVE_MAX 16384

/* ----------------------------------------------------------------- the BIO */

static int take(BIO *bio, const char *bytes, size_t len, size_t *taken)
{
    struct ciphertext *c = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (!buf_append(&c->out, bytes, len)) {
        ERR_raise(ERR_LIB_BIO, ERR_R_MALLOC_FAILURE);
        return 0;
    }
    *taken = len;
    return 1;
}

static int give(BIO *bio, char *bytes, size_t room, size_t *given)
{
    struct ciphertext *c = BIO_get_data(bio);
    size_t len = buf_len(&c->in);

    BIO_clear_retry_flags(bio);
    if (len == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    if (len > room)
        len = room;
    memcpy(bytes, buf_head(&c->in), len);
    buf_consume(&c->in, len);
    *given = len;
    return 1;
}

/* OpenSSL flushes after each flight of the handshake, which has no effect here;
 * it needs no other command. */
static long control(BIO *bio, int command, long number, void *argument)
{
    (void)bio;
    (void)number;
    (void)argument;
    return command == BIO_CTRL_FLUSH;
}

bool ciphertext_open(struct ciphertext *c, SSL *ssl)
{
    c->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "nxlock");
    if (!c->method || BIO_meth_set_write_ex(c->method, take) != 1 ||
        BIO_meth_set_read_ex(c->method, give) != 1 ||
        BIO_meth_set_ctrl(c->method, control) != 1)
        return false;
    BIO *bio = BIO_new(c->method);
    if (!bio)
        return false;
    BIO_set_data(bio, c);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); /* takes it over */
    return true;
}

void ciphertext_close(struct ciphertext *c)
{
    BIO_meth_free(c->method);
    buf_free(&c->in);
    buf_free(&c->out);
}

/* --------------------------------------------------------- the descriptor */

bool tls_flush(struct transport *t)
{
    struct buf *out = &((struct session *)t->own)->ciphertext.out;

    if (buf_len(out) > 0) {
        ssize_t n = plain_send(t, buf_head(out), buf_len(out));
        if (n < 0)
            return false;
        buf_consume(out, (size_t)n);
    }
    t->wants_write = buf_len(out) > 0;
    return true;
}

ssize_t tls_fill(struct transport *t)
{
    struct session *s = t->own;
    struct buf *in = &s->ciphertext.in;

    if (!buf_reserve(in, RECEIVE_MAX)) {
        errno = ENOMEM;
        return -1;
    }
    ssize_t n = plain_receive(t, in->data + in->end, RECEIVE_MAX);
    if (n <= 0)
        return n;
    in->end += (size_t)n;
    s->peer_has_sent = true;
    t->wants_read = false;
    return n;
}
