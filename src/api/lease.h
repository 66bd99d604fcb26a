/* SPDX-License-Identifier: MIT */
/*
 * A lock's deadline: who sets it, who takes it back, and what becomes of the
 * key of one that is not released. All calls but operation_stale() need the
 * client's mutex.
 */
#ifndef NXLOCK_API_LEASE_H
#define NXLOCK_API_LEASE_H

#include "api/client.h"

static inline struct slice lock_token(const struct nxl_lock *lock)
{
    return (struct slice){lock->token, lock->token_len};
}

/* No later than max_hold_ms allows, whatever the servers say. */
void lease_set(struct nxl_lock *lock, uint64_t deadline);
/* Nothing may be relied on any more, though a release is due still. */
void lease_forget(struct nxl_lock *lock, uint64_t now);
/* The same when its time is over: what stands under its token from now on was
 * prolonged by who adopted it, and is not this handle's to delete. */
void lease_lapse(struct nxl_lock *lock, uint64_t now);
/* Nothing is held any more. */
void lease_end(struct nxl_lock *lock, uint64_t now);

/* What the result of op, which may be corrected, means for the lease. */
void lease_settle(struct operation *op, uint64_t now);

/* How long the key has to stand still, by min_hold_ms; 0: no time. */
uint32_t lease_rest_ms(const struct nxl_lock *lock, uint64_t now);

/* The last word on an operation that is over, by a fresh reading of the clock:
 * true when its grant has gone stale while it waited to be handed over. Needs
 * no mutex. Then operation_drop_stale makes it NXL_LOST and undoes it. */
bool operation_stale(struct operation *op);
void operation_drop_stale(struct operation *op, uint64_t now);

/* Makes sure the lock's token will be gone, without an operation. */
void lock_let_go(struct nxl_lock *lock, uint64_t now);
/* The same for a held lock whose handle ends, or begins anew: but its key
 * stands for the minimum, by the ttl that it has, and one whose lease ran out
 * is left alone. */
void lock_part(struct nxl_lock *lock, uint64_t now);

#endif
