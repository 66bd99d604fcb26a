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

/* Call it when a call on lock->life has begun. request: the name of its
 * requests in messages. */
void lock_begin(struct nxl_lock *lock, enum nxl_operation kind,
    const char *request, uint64_t now);

/* Call it after every change to lock->life: carries out actions, reports
 * events. */
void lock_run(struct nxl_lock *lock, uint64_t now);

/* Differs between contenders; jitter needs no secret. */
uint64_t lock_seed(const struct nxl_lock *lock, uint64_t now);

/* The handle is freed: its key is removed if possible. */
void lock_end(struct nxl_lock *lock, uint64_t now);

/* Checks the grant of a finished call against a fresh reading of the clock.
 * True: it has expired; then call lock_drop_expired(). Unlike the others here,
 * lock_grant_expired() needs no mutex. */
bool lock_grant_expired(const struct nxl_lock *lock);
void lock_drop_expired(struct nxl_lock *lock, uint64_t now);

/* nxl_client_interrupt() was called: ends all acquires. */
void lock_interrupt_all(struct nxl_client *client, uint64_t now);

#endif
