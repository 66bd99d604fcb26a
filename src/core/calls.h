/* SPDX-License-Identifier: MIT */
/*
 * The calls on a lock: what each of them begins. Afterwards the driver takes
 * actions and events, see life.h.
 *
 * No other call may be running (life.running). Functions that return bool
 * return false if the lease has expired: nothing has begun, the result is
 * "lost", and no event follows. seed is for jitter and differs between
 * contenders.
 */
#ifndef NXLOCK_CORE_CALLS_H
#define NXLOCK_CORE_CALLS_H

#include "core/state.h"

/* wait_ns: how long to wait for the name; NEVER. Not while it is held. */
void life_acquire(
    struct life *l, uint64_t wait_ns, uint64_t seed, uint64_t now);
/* The same, but the call ends by `end` at the latest: it is one of several. */
void life_acquire_by(struct life *l, uint64_t wait_ns, uint64_t end,
    uint64_t seed, uint64_t now);
/* As life_acquire(), and the work begins. */
void life_begin(struct life *l, uint64_t wait_ns, uint64_t seed, uint64_t now);
/* How the work that the token began has ended. ONCE_CLEAR: the lock stays held,
 * as it must be now; else the lease ends. own: it is the lock's own token. */
bool life_tell(struct life *l, enum once_state reported, bool own,
    uint64_t seed, uint64_t now);
bool life_extend(struct life *l, uint32_t ttl_ms, uint64_t seed, uint64_t now);
bool life_release(struct life *l, uint64_t seed, uint64_t now);
/* own: it is the token that the lock already has. Not while it is held. */
void life_adopt(struct life *l, bool own, uint64_t seed, uint64_t now);
/* INSPECT, or any other call that leaves the lease alone. */
void life_query(
    struct life *l, enum life_call call, uint64_t seed, uint64_t now);
/* Removes a value. own: it is the lock's own token, which ends its lease. */
bool life_break(struct life *l, bool own, uint64_t seed, uint64_t now);

/* ACQUIRE: does it wait in line? */
static inline bool life_in_line(const struct life *l)
{
    return l->vote.machine == VOTE_LINE;
}

/* ACQUIRE, after ACTION_LINE or just begun: waits in line. line and messages
 * are the driver's memory; line is all zero at first. */
void life_line_up(struct life *l, struct line *line,
    const struct messages *messages, uint64_t now);
/* What the driver hears meanwhile goes to that line: line_on_granted() and
 * the functions after it. */

/* Cancels the call that is running, if any. Its end is an event. */
void life_cancel(struct life *l);
/* The handle is being freed: like life_cancel(), but a release goes on in the
 * background. Take all actions, then call life_end_lease(). */
void life_discard(struct life *l);

#endif
