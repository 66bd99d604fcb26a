/* SPDX-License-Identifier: MIT */
/*
 * A real server that speaks TLS too, at a port of its own, with certificates
 * in its directory. The fixture's own connection, functions of redis.h and the
 * plain port stay as they are.
 */
#ifndef NXLOCK_TEST_REDIS_TLS_H
#define NXLOCK_TEST_REDIS_TLS_H

#include "support/redis.h"

struct redis_tls {
    const char *certificate; /* a name of certs.h; NULL: "server" */
    const char *clients;     /* tls-auth-clients; NULL: "no" */
    bool only;               /* the plain port is closed, and r->url empty */
};

/* As redis_start(); certificates of clients are to be signed by "ca".
 * r->tls_url is rediss://127.0.0.1:r->tls_port?cacert=..., with cert= and key=
 * of "client" if every client needs one. Skips the test where it was built
 * without OpenSSL. */
int redis_start_tls(struct redis *r, const struct redis_tls *tls, ...)
    __attribute__((sentinel));

#endif
