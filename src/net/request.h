/* SPDX-License-Identifier: MIT */
/*
 * Requests on the connection: formats those that wait, hands each reply to the
 * owner of its command, and informs all owners when the connection ends.
 *
 * Invariant: each reply goes to the slot of its command and to no other.
 */
#ifndef NXLOCK_NET_REQUEST_H
#define NXLOCK_NET_REQUEST_H

#include "net/state.h"

void request_free(struct request *r);

/* Queues r. cache (cached commands) may be NULL; verb and cache must live until
 * completion. */
void request_submit(
    struct request *r, const struct verb *verb, struct command_cache *cache);

/* Fails the acquires that are not formatted yet, because the server has no
 * vote. */
void requests_refuse(
    struct server *s, enum fault fault, const struct text *words);

/* Fails those that wait until the Sentinels name this server again. */
void requests_unconfirmed(struct server *s, enum fault fault, uint64_t now);

/* The next request that is complete, now that the WAIT behind it was answered;
 * false: there is none. */
bool requests_ready(struct server *s, struct completion *c, uint64_t now);

/* Formats the requests that wait, as far as the socket and the limits allow,
 * and the WAIT behind them. */
void requests_format(struct server *s, uint64_t now);

/* Remembers at the server, in the marker key, that it has been the primary of
 * its present history for age_ms at least; if the server is up. */
void server_write_marker(struct server *s, int64_t age_ms, uint64_t now);

/* Hands one reply to the owner of its slot. True: it completed the request in
 * *c. *close: why the connection must end; FAULT_NONE: it goes on. */
bool requests_reply(struct server *s, const struct slot *slot,
    const struct reply *reply, struct completion *c, enum fault *close,
    uint64_t now);

/* The connection is about to be closed: informs the owner of every slot. */
void requests_cut_off(struct server *s, enum fault fault, uint64_t now);

#endif
