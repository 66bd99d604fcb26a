/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a lock that was asked for with a number is held with one that a
 * quorum has, or not at all; and what was granted without one is owed.
 */
#include "api/fencing.h"

#include "api/lease.h"
#include "api/operation.h"
#include "base/deadline.h"

bool fencing_begin(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    const struct acquire *a = &op->machine.acquire;
    if (!lock->counter || op->kind != NXL_OP_ACQUIRE || op->fencing)
        return false;
    struct fence_terms terms = {
        .servers = lock->client->server_count,
        .end = earlier(earlier(a->deadline, a->terms.end),
            deadline_after(now, a->terms.budget_ns)),
    };
    memcpy(terms.number, op->drawn, sizeof op->drawn);
    op->fencing = true;
    fence_start(&op->fence, &terms);
    lock->verb.kind = VERB_RAISE;
    lock->verb.fence = op->fence.number;
    return true;
}

bool fencing_undo(struct operation *op, enum verdict verdict, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    if (verdict == VERDICT_YES)
        return false;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        server_abandon(
            &lock->client->servers[i], &lock->requests[i], false, now);
    lock_let_go(lock, now);
    op->fencing = false;
    lock->verb.kind = VERB_ACQUIRE;
    acquire_again(&op->machine.acquire, &op->fence, now);
    return true;
}
