/* SPDX-License-Identifier: MIT */
/*
 * What the two halves of a server share: server.c lives the connection's
 * life, request.c knows what travels on it.
 */
#ifndef NXLOCK_NET_REQUEST_H
#define NXLOCK_NET_REQUEST_H

#include "net/server.h"

/* Makes sure that r can run into debt; before every acquire and release.
 * false: no memory. */
bool request_prepare(struct request *r, struct slice key);
void request_free(struct request *r);

/* Puts r, which is in no list, among the failed. */
void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure);

/* Formats what waits, as far as the socket and the limits allow. */
void requests_format(struct server *s, uint64_t now);

/* The connection is about to be closed: every slot's owner is told. */
void requests_cut_off(struct server *s, enum fault fault, uint64_t now);

/* A transaction is open that nobody goes on with: without an end, what follows
 * would be part of it. No memory for the few bytes: then the connection has to
 * end. */
void request_discard(struct server *s, uint64_t now);

/* Whose fault it is that the reader goes no further. */
enum fault stream_fault(const struct server *s);

/* Ends the connection; in server.c. */
void server_close(struct server *s, enum fault fault, uint64_t now);
/* Before a new request: a connection that is dead or hopeless is replaced
 * while nothing is in doubt; in server.c. */
void server_refresh(struct server *s, uint64_t now);

#endif
