/* SPDX-License-Identifier: MIT */
/*
 * Cancels requests, and keeps the list of cleanups that follow. What a
 * cancelled request leaves to be cleaned up is decided in core/cleanup.c.
 *
 * Invariant: whatever a request may have done, or may still do, at the server
 * has a cleaner before its slot loses its owner; a connection is never left
 * with a transaction open.
 */
#ifndef NXLOCK_NET_CANCEL_H
#define NXLOCK_NET_CANCEL_H

#include "net/state.h"

/* Stops waiting for r. undo: its token must not stay at the server. Returns
 * true when no byte of r had been sent. A request that is idle (completed)
 * may be undone too: then a cleanup begins. */
bool server_abandon(
    struct server *s, struct request *r, bool undo, uint64_t now);

/* Begins the cleanup of token, which r has acquired, without a request: a
 * release that no caller waits for, given up at not_after (0: no limit). Takes
 * r's spare for it, if there is one. */
void server_owe(struct server *s, struct request *r, struct slice token,
    uint32_t ttl_ms, uint64_t not_after, uint64_t now);

/* May token be adopted as far as this server is concerned? False: its deletion
 * may be on the way. First this is checked at all servers; then, if the
 * adoption succeeds, the cleanups of the token are cancelled at each.
 * r is the adopter's. applied: this server has said that it has the token, so
 * that its acquire cannot be applied later. */
bool server_can_adopt(
    const struct server *s, struct slice key, struct slice token);
void server_adopt(struct server *s, struct request *r, struct slice key,
    struct slice token, bool applied);

/* The connection is being lost on which r was sent, before the answer that
 * decides. of: what is known of that connection. */
void request_lost(
    struct server *s, struct request *r, const struct facts *of, uint64_t now);

/* r was a release and has been answered. */
void request_released(struct server *s, struct request *r, uint64_t now);

/* An open transaction that is not continued has to be ended, or the commands
 * that follow would be part of it. If there is no memory for the few bytes, the
 * connection has to end. */
void request_discard(struct server *s, uint64_t now);

/* Takes back what is too late to be sent: formatted, but not begun to leave
 * because the socket took no more bytes. */
void requests_withdraw_late(struct server *s, uint64_t now);

#endif
