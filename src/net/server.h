/* SPDX-License-Identifier: MIT */
/*
 * One server: where it is, the connection to it, the requests under way, and
 * the cleanups. The driver submits requests, lets the server push bytes, hands
 * in poll events and the time, and takes completions out one by one; nothing
 * here blocks or calls back.
 *
 * The connection is made when something wants to be sent, and after a loss
 * again at once if it had been good, else with growing delays. Good is one
 * on which a command was answered; a handshake alone proves little.
 */
#ifndef NXLOCK_NET_SERVER_H
#define NXLOCK_NET_SERVER_H

#include <poll.h>

#include "net/cancel.h"
#include "net/request.h"
#include "net/state.h"

/* Takes endpoint over. sole: it is the only server (see plain), and no vote
 * is taken; of others INFO has to be known. */
void server_init(struct server *s, const struct endpoint *endpoint, bool sole,
    uint64_t seed);
/* Its descriptors are in poller under key from now on; before any use. */
void server_set_poller(
    struct server *s, const struct poller *poller, unsigned key);
/* Closes and frees; sends no command. */
void server_free(struct server *s);
/* Closes the descriptors, and leaves the rest alone, for a fork()ed child. */
void server_close_in_child(struct server *s);

/* Queues verb. kept may be NULL; verb and kept live until completion. */
void server_submit(struct server *s, struct request *r, const struct verb *verb,
    struct kept_commands *kept, uint64_t now);

/* A submitted request must not wait for the reconnect delay beyond this time:
 * one attempt to connect is made then. */
void server_connect_by(struct server *s, uint64_t at);

/* What it reported about itself may have changed: makes a new connection before
 * the next request, unless one is being made. */
void server_look_again(struct server *s);

/* Connects if something wants to go, formats, sends. */
void server_push(struct server *s, uint64_t now);
/* What the poller reported for its key, as events of poll(). */
void server_ready(struct server *s, short revents, uint64_t now);
/* The clock has moved: time-outs. */
void server_tick(struct server *s, uint64_t now);
/* The next completion; false when there is none now. */
bool server_next(struct server *s, struct completion *c, uint64_t now);

/* When server_tick or server_push has something to do without an event. */
uint64_t server_deadline(struct server *s);

/* Is there a cleanup to be sent before end, or the reply to a command that may
 * have changed something? Not merely a handshake or a question. */
bool server_unfinished(struct server *s, uint64_t end);

#endif
