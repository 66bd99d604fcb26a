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
 * the time of life.wake has come. Nothing is ever called back.
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

/* Other terms, from the next call on. */
void life_set_terms(struct life *l, const struct life_terms *terms);

/* ---------------------------------------------------------------- outcomes */

void life_outcome(struct life *l, enum life_track track, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After ACTION_UNDO or ACTION_ABANDON: the request has certainly changed
 * nothing at the server. */
void life_withdrawn(struct life *l, const struct action *action);
/* After ACTION_TOKEN: there were no random bytes. */
void life_no_token(struct life *l);
/* After ACTION_CLAIM: the token cannot be adopted. */
void life_not_claimed(struct life *l);
void life_tick(struct life *l, uint64_t now);

/* Until when the key has the present token at least, by the last lease that was
 * promised, or that the line has granted and a condition is still to extend; 0:
 * none was. See weigh_extension(). */
uint64_t life_lasts_until(const struct life *l);

/* A call of which the machine knows nothing has ended: that of several locks by
 * one handle. Its end is an event. */
void life_end_call(struct life *l, enum life_result result, enum fault fault);

/* ----------------------------------------------------------------- outputs */

bool life_next(struct life *l, struct action *action, uint64_t now);
enum life_event life_event(struct life *l);

#endif
