/* SPDX-License-Identifier: MIT */
/*
 * One verb on one connection, from its first byte to its outcome: which
 * commands go out, how many replies they have, and what the replies mean. A
 * small machine, because a verb can take more than one step (EVALSHA, then
 * EVAL after NOSCRIPT) and more than one way (see strategies.h).
 */
#ifndef NXLOCK_WIRE_EXCHANGE_H
#define NXLOCK_WIRE_EXCHANGE_H

#include "wire/strategy.h"

/* x is all zero, or has been used before. verb (and what it points to) and kept
 * outlive the exchange; kept may be NULL. */
void exchange_begin(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept);

/* The same, where x has been used for this token before (or is all zero): in
 * what form it was written is remembered, until the next ACQUIRE or
 * exchange_forget(). */
void exchange_go_on(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept);

/* Frees what x has stored of replies; then it can be used again. */
void exchange_free(struct exchange *x);

/* x is used for another token from now on, though not by an ACQUIRE: what is
 * remembered of the last one is dropped. */
void exchange_forget(struct exchange *x);

/* x is about the same token as from: what is known of its form. */
void exchange_inherit(struct exchange *x, const struct exchange *from);

/* x goes on for verb, the same one in another place, without kept commands;
 * the answers to from are ignored. */
void exchange_hand_over(
    struct exchange *from, struct exchange *x, const struct verb *verb);

/* May its present step go out on this connection now? Else another exchange's
 * transaction is open there: everything would become a part of it. */
bool exchange_may_go(const struct exchange *x, const struct dialect *dialect);

/* Appends the commands of the present step. Returns how many replies they
 * will have (exchange.due), 0: no memory, out as before. On another connection
 * than the step before it begins anew. The dialect outlives the exchange. */
unsigned exchange_encode(
    struct exchange *x, struct dialect *dialect, struct buf *out);

enum exchange_next exchange_reply(
    struct exchange *x, const struct reply *reply);

/* ACQUIRE, under way: may what was sent of its present step have written the
 * token, which of its due replies says so? -1: none does, or that one has come
 * already: then nothing is written later. */
int exchange_writes(const struct exchange *x, bool answered);

/* Its transaction had been opened before its present step. */
bool exchange_opened(const struct exchange *x);

/* Does the one command on its way compare and change by itself? */
bool exchange_compares(const struct exchange *x);

/* Of the token, as far as x knows: the value itself tells when the lock is
 * over, so its TTL cannot be shortened. */
bool exchange_tells_end(const struct exchange *x);
/* ... it may be deleted: false if it may have replaced another owner's. */
bool exchange_may_undo(const struct exchange *x);
/* ... how long it may stay on the server after it was written for ttl_ms. */
uint64_t exchange_lasts_ms(const struct exchange *x, uint32_t ttl_ms);

/* Its replies are ignored from now on. True: a transaction of its own is
 * open on the connection, and has to be ended there by command_discard(),
 * one reply, before anything else goes. */
bool exchange_leave(struct exchange *x);

#endif
