/* SPDX-License-Identifier: MIT */
/*
 * The state machine for the life of one lock over N >= 1 servers: acquired,
 * held, renewed, handed over, released or lost. It decides everything and does
 * nothing: no socket, no clock, no memory of its own. Its driver is the lock
 * handle (lock/drive.c) or the simulator.
 *
 * In: a call, an outcome from a server, the time. After each of them the
 * driver takes actions (life_next until false) and carries them out, then
 * takes events (life_event until LIFE_NOTHING), and calls life_tick() when
 * life_wake() has come. Nothing is ever called back.
 *
 * Two tracks send requests independently of each other: the call that the
 * user made, and the renewal of a held lease.
 *
 * Invariants: a lease begins only with a quorum of grants whose deadline has
 * not passed; from the deadline that was promised on, nothing is sent that
 * could remove or shorten the key of that token; each call ends exactly once.
 */
#ifndef NXLOCK_CORE_LIFE_H
#define NXLOCK_CORE_LIFE_H

#include "core/calls.h"
#include "core/settle.h"
#include "core/state.h"

/* Nothing is held, nothing runs. l is all zero; so are the ballots,
 * LIFE_BALLOTS for each server, and the renewal, which is needed if
 * terms->renewed, else NULL. They are the driver's memory, and outlive l. */
#define LIFE_BALLOTS (VOTE_BALLOTS + 1)
void life_init(struct life *l, const struct life_terms *terms,
    struct ballot *ballots, struct renewal *renewal);

/* ---------------------------------------------------------------- outcomes */

void life_outcome(struct life *l, enum life_track track, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After UNDO or LEAVE: no byte of the request had been sent. */
void life_withdrawn(struct life *l, const struct action *action);
/* After ACTION_TOKEN: there were no random bytes. */
void life_no_token(struct life *l);
/* After ACTION_CLAIM: the token cannot be adopted. */
void life_not_claimed(struct life *l);
void life_tick(struct life *l, uint64_t now);

/* ----------------------------------------------------------------- outputs */

bool life_next(struct life *l, struct action *action, uint64_t now);
enum life_event life_event(struct life *l);
uint64_t life_wake(const struct life *l, enum life_track track);

/* Fills in what ACTION_SEND sends, except the key, the token (INSPECT: none;
 * BREAK: the value to remove), the counter, and the client of JOIN and STAY,
 * which are the driver's. */
void life_verb(const struct life *l, enum life_track track, struct verb *verb);

/* ACQUIRE: when to connect to a server that is down; see
 * acquire_connect_by(). */
uint64_t life_connect_by(const struct life *l);

/* Checks a finished call against a fresh reading of the clock. True: its grant
 * expired before the result was returned to the caller; then
 * life_drop_expired() makes the result LIFE_LOST. life_grant_expired() needs no
 * mutex. */
bool life_grant_expired(const struct life *l, uint64_t now);
void life_drop_expired(struct life *l, uint64_t now);

/* BEGIN that was granted: its caller knows it from now on. */
void life_seen(struct life *l);

/* ACQUIRE, BEGIN that was granted: its fencing token; 0: none. */
static inline uint64_t life_fence(const struct life *l)
{
    return vote_acquires(&l->vote) ? vote_fence(&l->vote) : 0;
}

/* ACQUIRE, BEGIN: rounds begun so far. */
static inline unsigned life_rounds(const struct life *l)
{
    return vote_acquires(&l->vote) ? l->vote.acquire.rounds : 0;
}

#endif
