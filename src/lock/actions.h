/* SPDX-License-Identifier: MIT */
/*
 * Carries out the actions of a lock's state machine: each becomes a request of
 * one of the lock's operations, a token, a cleanup or a place in line. All
 * functions need the client's mutex.
 *
 * Invariant: what may make the lock held is sent only when a cleaner
 * (net/cleaner.h) is reserved for its cleanup.
 */
#ifndef NXLOCK_LOCK_ACTIONS_H
#define NXLOCK_LOCK_ACTIONS_H

#include "lock/handle.h"

void action_carry_out(
    struct nxl_lock *lock, const struct action *action, uint64_t now);

/* Hands an outcome to the state machine, if it counts, whether a server or the
 * library decided it. Nothing else does. */
void action_outcome(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now);

/* Draws a fresh token for the lock. False: there are no random bytes. */
bool action_draw_token(struct nxl_lock *lock);

static inline struct operation *operation_of(
    struct nxl_lock *lock, enum life_track track)
{
    return track == TRACK_CALL ? &lock->operation : &lock->renewing->operation;
}

#endif
