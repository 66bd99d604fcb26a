/* SPDX-License-Identifier: MIT */
/*
 * One server: its address, the connection to it, its requests and cleanups. The
 * driver submits requests, calls server_push() to send, hands in poll events
 * and the time, and takes completions one by one. Nothing here blocks or calls
 * back.
 *
 * A connection is made when there is something to send. After a loss it is made
 * again at once if a command had been answered on it (`good`), otherwise after
 * growing delays. A handshake alone proves little.
 */
#ifndef NXLOCK_NET_SERVER_H
#define NXLOCK_NET_SERVER_H

#include <poll.h>

#include "net/cancel.h"
#include "net/request.h"
#include "net/state.h"

/* Queues verb at the server of r. cache (cached commands) may be NULL; verb and
 * cache must live until completion. */
void server_submit(struct request *r, const struct verb *verb,
    struct command_cache *cache, uint64_t now);

/* If a request still waits for the reconnect delay at this time, makes one
 * attempt to connect. */
void server_connect_by(struct server *s, uint64_t at);

/* What the server reported about itself may have changed: reconnects before the
 * next request, unless a connection is being made. */
void server_reconnect(struct server *s);

/* Closes the connection, if there is one, for that reason; the next request
 * makes a new one at once. */
void server_replace(
    struct server *s, enum fault fault, const char *why, uint64_t now);

/* Connects if there is something to send, formats, sends. */
void server_push(struct server *s, uint64_t now);
/* Takes in what the poller reported for its source, as events of poll(). */
void server_ready(struct server *s, short revents, uint64_t now);
/* Checks for timeouts. */
void server_tick(struct server *s, uint64_t now);
/* The next completion; false when there is none now. */
bool server_next(struct server *s, struct completion *c, uint64_t now);
/* Has a request or the connection failed since server_next() returned false? */
static inline bool server_failed(const struct server *s)
{
    return !list_empty(&s->failed) || s->ended != FAULT_NONE;
}

/* When server_tick() or server_push() must be called even without an event. */
uint64_t server_deadline(struct server *s);

/* Is a cleanup to be sent before end, or the reply due to a command that may
 * have changed something? Handshakes and queries do not count. */
bool server_unfinished(struct server *s, uint64_t end);

#endif
