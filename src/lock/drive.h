/* SPDX-License-Identifier: MIT */
/*
 * Carries out what a lock's state machine decides: its actions become requests
 * of the lock's operations, their outcomes go back to it, and its events
 * become results, messages and reports of a loss. All functions need the
 * client's mutex.
 *
 * Invariant: after each input all actions are carried out before any event is
 * handed out.
 */
#ifndef NXLOCK_LOCK_DRIVE_H
#define NXLOCK_LOCK_DRIVE_H

#include "lock/handle.h"

/* The types of a lock's two operations: its call, and its renewal. */
extern const struct operation_type lock_call_type, lock_renewal_type;

/* Call it when a call on lock->life has begun: goes on as lock_run(). request:
 * the name of its requests in messages. */
void lock_begin(struct nxl_lock *lock, enum nxl_operation kind,
    const char *request, uint64_t now);

/* Call it after every other change to lock->life: carries out actions, reports
 * events. */
void lock_run(struct nxl_lock *lock, uint64_t now);

/* Cancels the call in progress, if any. */
void lock_cancel(struct nxl_lock *lock, uint64_t now);

/* Differs between contenders; jitter needs no secret. */
uint64_t lock_seed(const struct nxl_lock *lock, uint64_t now);

/* The handle is freed: its key is removed if possible. */
void lock_end(struct nxl_lock *lock, uint64_t now);

/* The grant of a finished call had expired before its caller had the result:
 * see life_grant_expired(). */
void lock_drop_expired(struct nxl_lock *lock, uint64_t now);

/* nxl_client_interrupt() was called: ends all acquires. */
void lock_interrupt_all(struct nxl_client *client, uint64_t now);

/* Another server is the primary: renews all locks now, so that their holders
 * learn at once of what it does not have. */
void lock_renew_all(struct nxl_client *client, uint64_t now);

#endif
