/* SPDX-License-Identifier: MIT */
/* Statistics of attempts, calls and renewals, and the program's tracer, which
 * is called for each of them and for each loss. All calls need the client's
 * mutex.
 *
 * Invariant: each of them is counted once. Without a tracer it costs an
 * addition and a comparison. */
#ifndef NXLOCK_LOCK_TRACE_H
#define NXLOCK_LOCK_TRACE_H

#include "lock/handle.h"

void trace_attempt(struct nxl_lock *lock, uint64_t now);
/* A call is over. */
void trace_end(struct nxl_lock *lock, int result, uint64_t now);
void trace_renewal(
    struct nxl_lock *lock, int result, const char *text, uint64_t now);
void trace_loss(
    struct nxl_lock *lock, enum nxl_loss loss, const char *text, uint64_t now);

#endif
