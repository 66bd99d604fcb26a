/* SPDX-License-Identifier: MIT */
/*
 * An operation is started, stepped by outcomes and by the clock, and
 * completed; both doors do the same with it. All calls need the client's
 * mutex.
 */
#ifndef NXLOCK_API_OPERATION_H
#define NXLOCK_API_OPERATION_H

#include "api/client.h"

/* Begin; the arguments have been checked. */
void operation_acquire(struct nxl_lock *lock, uint64_t wait_ns, uint64_t now);
void operation_extend(
    struct nxl_lock *lock, uint32_t ttl_ms, uint64_t end, uint64_t now);
void operation_release(struct nxl_lock *lock, uint64_t now);
/* adopt: the lock's token is the one to take over. break: lock->target. */
void operation_round(
    struct nxl_lock *lock, enum nxl_operation kind, uint64_t now);

void operation_outcome(
    struct operation *op, const struct completion *c, uint64_t now);
void operation_tick(struct operation *op, uint64_t now);
void operation_cancel(struct operation *op, uint64_t now);
/* Its lock or client ends: cancels what can be, and leaves a release that is
 * under way to itself. Harmless when nothing is running. */
void operation_discard(struct operation *op, uint64_t now);

#endif
