/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: the state of a client's settings for
 * TLS, and of one connection. */
#ifndef NXLOCK_NET_TLS_PARTS_H
#define NXLOCK_NET_TLS_PARTS_H

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "model/fault.h"
#include "net/tls/tls.h"

struct target;

/* Identifies the contents of a file, and who may read it, without reading it.
 */
struct file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed; /* it, or its mode or owner */
};

#define TLS_FILES 5 /* that settings can name */

struct tls {
    unsigned owners;
    struct settings settings; /* only those of TLS; owned */
    SSL_CTX *context; /* owned; of the next connection; NULL: to be made */
    struct file_version versions[TLS_FILES]; /* of what it was made from */
};

/* The encrypted bytes from and for the peer (ciphertext.c). */
struct ciphertext {
    BIO_METHOD *method; /* owned; OpenSSL reads and writes by it */
    struct buf in, out;
};

/* The state of one connection. */
struct session {
    SSL *ssl;
    struct ciphertext ciphertext;
    const struct target *to;
    bool broken;        /* by an error of OpenSSL: nothing more comes or goes */
    bool over;          /* the peer has closed, but not all is delivered */
    bool peer_has_sent; /* the peer has sent something */
    bool cert_requested; /* for a client certificate, and there is none */
    X509 *refused;       /* owned; the certificate that cannot be trusted */
    int refusal;         /* why: X509_V_ERR_... */
};

/* The context for the next connection; if a file has changed, made anew. NULL:
 * *error says why not. */
SSL_CTX *tls_context(struct tls *tls, struct text *error);

/* Makes the context anew for the next connection. */
void tls_read_again(struct tls *tls);

/* Gives ssl a BIO, through which it reads and writes these queues; call
 * ciphertext_close() after SSL_free(). False: no memory, and there is nothing
 * to free but what ciphertext_close() frees. */
bool ciphertext_open(struct ciphertext *c, SSL *ssl);
void ciphertext_close(struct ciphertext *c);

/* Sends what is encrypted, as far as the socket takes it at once; wants_write
 * says whether anything is left. False: the connection is lost, with errno set,
 * and this call has sent nothing. */
bool tls_flush(struct transport *t);
/* Reads once from the socket, for OpenSSL; as plain_receive(). */
ssize_t tls_fill(struct transport *t);

/* The row "facts" of the kind. */
void tls_facts(const struct transport *t, struct transport_facts *facts);

/* Explains why the handshake failed: code is OpenSSL's error. */
enum fault tls_explain_handshake(
    const struct session *s, unsigned long code, struct text *out);

/* The same for an error of a connection that was secure: TLS 1.3 servers check
 * the client's certificate only then. Returns FAULT_NONE if it explains no more
 * than a lost connection; otherwise *why is static. */
enum fault tls_explain_alert(
    const struct session *s, unsigned long code, const char **why);

/* What any other error says about the loss of a connection; static. */
const char *tls_explain_loss(unsigned long code);

#endif
