/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL as a server in memory, with a wire to the client and one from it.
 */
#ifndef NXLOCK_TESTS_FUZZ_TLS_PEER_H
#define NXLOCK_TESTS_FUZZ_TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz/tls_wire.h"

/* Whose certificate the server has. The client knows the CA of the first two,
 * and calls the server "localhost". */
enum peer_identity { PEER_GOOD, PEER_OTHER_HOST, PEER_FOREIGN, PEERS };

struct tls_peer {
    SSL *ssl;
    BIO *in, *out;
    struct wire up, down;  /* to the server, and from it */
    size_t written, heard; /* bytes of text sent, and received */
    unsigned updates;      /* of its keys */
    bool over;             /* it has said goodbye */
    bool failed;           /* its session is over by an error */
};

/* The file with the CA certificate. */
const char *peer_ca(void);

/* version: TLS1_2_VERSION or TLS1_3_VERSION. small: in records of 512 bytes, so
 * a ticket has several. */
void peer_open(
    struct tls_peer *p, int version, enum peer_identity who, bool small);
void peer_close(struct tls_peer *p);

/* The n-th byte of the text in each direction. No part of the client's is seen
 * in what it encrypts. */
uint8_t peer_says(size_t n);
uint8_t client_says(size_t n);

/* Takes what has come up, which must be the client's text in its order, and
 * sends what it makes. */
void peer_step(struct tls_peer *p);
void peer_write(struct tls_peer *p, size_t len);
/* TLS 1.3. both: the client is to do so too. */
void peer_update_keys(struct tls_peer *p, size_t times, bool both);
void peer_send_ticket(struct tls_peer *p); /* TLS 1.3 */
void peer_ask_anew(struct tls_peer *p);    /* TLS 1.2: for another handshake */
void peer_say_goodbye(struct tls_peer *p);

#endif
