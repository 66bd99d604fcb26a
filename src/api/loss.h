/* SPDX-License-Identifier: MIT */
/*
 * Renewals and losses of a renewed lock, as its user sees them: counted,
 * traced, and a loss reported through the descriptor and as an event. All
 * functions need the client's mutex.
 *
 * Invariant: a loss makes nxl_lock_held() false before it is reported, and is
 * reported once, or not at all if the caller ends the lock before.
 */
#ifndef NXLOCK_API_LOSS_H
#define NXLOCK_API_LOSS_H

#include "api/handle.h"

/* LIFE_RENEWED, LIFE_RENEWAL_FAILED or LIFE_LEASE_LOST has happened. */
void loss_event(struct nxl_lock *lock, enum life_event event, uint64_t now);

/* A lease was granted: the loss of the last one is history. */
void loss_forget(struct nxl_lock *lock);

/* Before the events of a run: whoever has ended a renewed lock knows, and is
 * not told of its loss any longer. */
void loss_ended(struct nxl_lock *lock, uint64_t now);

/* After each run of a renewed lock: its timer and the client's counts follow
 * the state of its renewal. */
void loss_settle(struct nxl_lock *lock, uint64_t now);

/* The next lock whose loss has not been reported; NULL. */
struct nxl_lock *loss_take(struct nxl_client *client);

#endif
