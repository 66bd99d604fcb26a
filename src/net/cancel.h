/* SPDX-License-Identifier: MIT */
/*
 * Cancels requests, begins the cleanups that they need, sends these at their
 * time, and drops them when their token can no longer be at the server.
 * core/cleanup.c decides what a cancelled request leaves behind; cleaner.h has
 * the commands of one cleanup.
 *
 * Invariant: a cancelled request that needs a cleanup has a cleaner before its
 * slot loses its owner. No transaction is left open on a connection.
 */
#ifndef NXLOCK_NET_CANCEL_H
#define NXLOCK_NET_CANCEL_H

#include "net/state.h"

/* Cancels r. undo: its token must not stay at the server. Returns true if r has
 * certainly changed nothing at the server: no byte of it had been sent; or it
 * was answered, and did not change anything or (undo) what it changed is
 * certainly undone. A completed (idle) request may be undone too, which begins
 * a cleanup. */
bool server_cancel(struct request *r, bool undo, uint64_t now);

/* Begins the cleanup of token, which r acquired: like a release that no caller
 * waits for, given up at not_after (0: no limit). Uses r's spare;
 * without one the key is left to its TTL. */
void server_clean_up(struct request *r, struct slice token, uint32_t ttl_ms,
    uint64_t not_after, uint64_t now);
/* Likewise of a BEGIN that was granted, but whose caller does not know it. */
void server_undo_begin(
    struct request *r, struct slice token, uint32_t ttl_ms, uint64_t now);

/* Adoption. server_can_adopt() is asked for all servers first: false means that
 * the deletion of token may be on the way. If all agree, server_adopt() cancels
 * the cleanups of token at each server. r: the adopter's request. applied: this
 * server has said that it has the token, so its acquire cannot be applied
 * later. */
bool server_can_adopt(
    const struct server *s, struct slice key, struct slice token);
void server_adopt(
    struct request *r, struct slice key, struct slice token, bool applied);

/* May an earlier token of r's call be at its key? Yes while one of this key is
 * to be removed, and after a cleanup was given up. */
bool server_may_have_earlier_token(const struct request *r);

/* The connection on which r was sent is being lost before r was decided. of:
 * the facts of that connection. */
void request_lost(
    struct server *s, struct request *r, const struct facts *of, uint64_t now);

/* r was a release and has been answered. */
void request_released(struct server *s, struct request *r, uint64_t now);

/* No byte of r's present step was sent, and the connection had been up: it
 * waits to be sent, as if it had not been formatted. */
void request_wait_again(struct server *s, struct request *r);

/* Sends DISCARD to end an open transaction, or the commands that follow would
 * be part of it. Without memory for that, the connection ends. */
void request_discard(struct server *s, uint64_t now);

/* Takes back commands that are too late: formatted, but with no byte sent yet
 * because the socket took no more. Of a TELL only the deletion of the key is
 * too late: it waits to be formatted anew. */
void requests_withdraw_late(struct server *s, uint64_t now);

/* Of the cleanups with nothing under way (CLEANUP_IDLE) the server has a list,
 * s->idle_cleaners. */

/* The cleanup is over: frees k, and counts it if it was given up. */
void cleanup_finished(struct server *s, struct cleaner *k);

/* Drops cleanups that have expired, whether there is a connection or not. */
void cleanups_expire(struct server *s, uint64_t now);

/* Formats those whose time has come. They are sent before anything else: an
 * acquire of the same name must not find a key that is about to be removed. */
void cleanups_send(struct server *s, uint64_t now);

/* When the first cleanup is to be sent. Those that are under way, which may be
 * many, are not searched. */
uint64_t cleanups_next_at(struct server *s);

#endif
