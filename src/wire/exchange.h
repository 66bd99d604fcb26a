/* SPDX-License-Identifier: MIT */
/*
 * One verb on one connection, from its first byte to its outcome: which
 * commands are sent, how many replies they have, and what the replies mean. A
 * small state machine, because a verb may need several steps (EVALSHA, then
 * EVAL after NOSCRIPT) and several strategies (strategies.h).
 */
#ifndef NXLOCK_WIRE_EXCHANGE_H
#define NXLOCK_WIRE_EXCHANGE_H

#include "wire/strategy.h"

/* Begins a verb. x is all zero, or has been used before; exchange_free() frees
 * what it stores. verb (and what it points to) and the cached commands cache
 * must outlive the exchange; cache may be NULL. */
void exchange_begin(
    struct exchange *x, const struct verb *verb, struct command_cache *cache);

/* The same for an x that was used for this token before (or is all zero): it
 * remembers in which form the token was written, until the next ACQUIRE, JOIN
 * or exchange_forget_form(). */
void exchange_restart(
    struct exchange *x, const struct verb *verb, struct command_cache *cache);

/* Frees what x has stored of replies; then it can be used again. */
void exchange_free(struct exchange *x);

/* Forgets in which form the last token was written: x will be used for another
 * token, though not by an ACQUIRE. */
void exchange_forget_form(struct exchange *x);

/* Copies what is known about the token's form: x is for the same token as
 * from. */
void exchange_inherit(struct exchange *x, const struct exchange *from);

/* Moves an exchange in progress from one object to another: x continues with
 * verb, a copy of the same verb, without cached commands. Replies go to x from
 * now on. */
void exchange_move(
    struct exchange *from, struct exchange *x, const struct verb *verb);

/* May its current step be sent on this connection now? False if another
 * exchange has a transaction open there: the commands would join it. */
bool exchange_may_send(const struct exchange *x, const struct dialect *dialect);

/* Appends the commands of the current step. Returns how many replies they will
 * have (exchange.due); 0: no memory, out unchanged. If the connection is not
 * that of the previous step, the verb starts again. dialect must outlive the
 * exchange. */
unsigned exchange_encode(
    struct exchange *x, struct dialect *dialect, struct buf *out);

/* Of one whose current step was encoded: could its command, to acquire one of
 * several names (verb.after), be one command for several? */
bool exchange_may_join(const struct exchange *x);
/* Does x ask for the name behind that of `before`, in the same call? */
bool exchange_follows(const struct exchange *x, const struct exchange *before);
/* Appends one command in place of theirs, which were taken back: each follows
 * the one before it, and if there is more than one, all may join. False: no
 * memory, out unchanged. */
bool exchange_encode_joined(
    struct exchange *const *of, unsigned count, struct buf *out);
/* Is the command of x, whose current step was formatted, one for several? */
bool exchange_is_joined(const struct exchange *x);

enum exchange_next exchange_reply(
    struct exchange *x, const struct reply *reply);

/* An ACQUIRE or JOIN in progress: if its current step may still write the
 * token, the index of the due reply that will tell; -1: it cannot write it any
 * later. answered: a reply of this step has arrived. */
int exchange_deciding_reply(const struct exchange *x, bool answered);

/* Had its transaction been opened before the current step? */
bool exchange_opened(const struct exchange *x);

/* Is the command that was sent a compare-and-change of its own? */
bool exchange_compares(const struct exchange *x);
/* Does an extension write even if the lease is longer already? */
bool exchange_always_writes(const struct exchange *x);

/* As far as x knows: does the value itself contain the time at which the lock
 * ends? Then the lease cannot be shortened. */
bool exchange_end_is_in_value(const struct exchange *x);
/* May the token be deleted? Not if it may have replaced another owner's. */
bool exchange_may_undo(const struct exchange *x);
/* How long the token may stay on the server after it was written for ttl_ms. */
uint64_t exchange_lasts_ms(const struct exchange *x, uint32_t ttl_ms);

/* Its replies are ignored from now on. True: it has a transaction open on the
 * connection, which the caller must end with command_discard() (one reply)
 * before it sends anything else. */
bool exchange_cancel(struct exchange *x);

#endif
