/* SPDX-License-Identifier: MIT */
/*
 * One server: its address, the connection to it, its requests and cleanups. The
 * driver submits requests, calls server_push() to send, notes poll events in
 * server.ready, and takes completions one by one. Nothing here blocks or calls
 * back.
 *
 * A lost connection is noticed by conn.c, which reads and writes (or by dial.c
 * while it is made); server.c ends it; request.c informs what was under way.
 *
 * A connection is made when there is something to send. After a loss it is made
 * again at once if a command had been answered on it (has_answered), otherwise
 * after growing delays. A handshake alone
 * does not count, because a server may accept and then drop each connection.
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

/* What the server reported about itself may have changed: reconnects before the
 * next request, unless a connection is being made. */
void server_require_reconnect(struct server *s);

/* Closes the connection, if there is one, for that reason; the next request
 * makes a new one at once. */
void server_drop_connection(
    struct server *s, enum fault fault, const char *why, uint64_t now);

/* Connects if there is something to send, formats, sends. True: a request or
 * the connection has failed, so server_next() must be called again. */
bool server_push(struct server *s, uint64_t now);
/* The next completion, by what the poller reported (server.ready) and by the
 * time; false when there is none now. */
bool server_next(struct server *s, struct completion *c, uint64_t now);

/* ------- only for a server whose place is told by Sentinels:
 * server_use_sentinels()
 */

/* When Sentinels must be asked where it is, because a connection is wanted. */
uint64_t server_locate_by(struct server *s);
/* The address in s->to is where it is: server_push() may connect. */
void server_located(struct server *s);
/* The address in s->to is about to be replaced: ends whatever goes on there. */
void server_leave(struct server *s, const char *why, uint64_t now);
/* The address in s->to is another one: that no connection could be made at the
 * former one delays none here. */
void server_moved(struct server *s, uint64_t now);
/* Where it is, or whether it is the primary, could not be found out: fails the
 * requests that wait for that. */
void server_not_found(
    struct server *s, enum fault fault, const struct text *why, uint64_t now);

/* When server_next() or server_push() must be called even without an event. */
uint64_t server_deadline(struct server *s);

/* Is a cleanup to be sent before end, or the reply due to a command that may
 * have changed something? Handshakes and queries do not count. */
bool server_unfinished(struct server *s, uint64_t end);

#endif
