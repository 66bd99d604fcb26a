/* SPDX-License-Identifier: MIT */
/*
 * Counts and traces the renewals of a lock, and reports its loss through the
 * descriptor and as an event. All functions need the client's mutex.
 *
 * Invariant: a loss makes nxl_lock_held() false before it is reported, and is
 * reported once, or not at all if the caller ends the lock before.
 */
#ifndef NXLOCK_LOCK_LOSS_H
#define NXLOCK_LOCK_LOSS_H

#include "lock/handle.h"

/* Handles LIFE_RENEWED, LIFE_RENEWAL_FAILED and LIFE_LEASE_LOST. */
void loss_event(struct nxl_lock *lock, enum life_event event, uint64_t now);

/* Reports that the lock is lost, for the reason in lock->renewing. */
void loss_announce(struct nxl_lock *lock, uint64_t now);

/* Why its last lease was lost, for people; "" if it was not, or that is not
 * known yet. It stays as it is until the next grant. */
const char *loss_words(const struct nxl_lock *lock);

/* A lease was granted: forgets the loss of the previous one. */
void loss_forget(struct nxl_lock *lock);

/* Call it before the events of a run: if the caller has ended the lock, its
 * loss is no longer reported. */
void loss_ended(struct nxl_lock *lock);

/* Call it after each run of a renewed lock: updates its timer and the client's
 * counts. */
void loss_update(struct nxl_lock *lock, uint64_t now);

/* Takes the next lock with a loss to report; NULL if there is none. */
struct nxl_lock *loss_take(struct nxl_client *client);

#endif
