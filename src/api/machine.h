/* SPDX-License-Identifier: MIT */
/* The core's machines behind one face: acquire and its second part, fence; and
 * round for all else. */
#ifndef NXLOCK_API_MACHINE_H
#define NXLOCK_API_MACHINE_H

#include "api/client.h"

static inline bool is_acquire(const struct operation *op)
{
    return op->kind == NXL_OP_ACQUIRE;
}

static inline bool machine_next(struct operation *op, struct ask *ask)
{
    if (op->fencing)
        return fence_next(&op->fence, ask);
    return is_acquire(op) ? acquire_next(&op->machine.acquire, ask)
                          : round_next(&op->machine.round, ask);
}

static inline void machine_withdrawn(struct operation *op, unsigned server)
{
    if (op->fencing)
        return; /* it does not ask for that */
    if (is_acquire(op))
        acquire_withdrawn(&op->machine.acquire, server);
    else
        round_withdrawn(&op->machine.round, server);
}

static inline void machine_outcome(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (op->fencing)
        fence_outcome(&op->fence, server, outcome, outcome->fence);
    else if (is_acquire(op))
        acquire_outcome(&op->machine.acquire, server, outcome, now);
    else
        round_outcome(&op->machine.round, server, outcome, now);
}

static inline void machine_tick(struct operation *op, uint64_t now)
{
    if (op->fencing)
        fence_tick(&op->fence, now);
    else if (is_acquire(op))
        acquire_tick(&op->machine.acquire, now);
    else
        round_tick(&op->machine.round, now);
}

static inline void machine_cancel(struct operation *op)
{
    if (op->fencing)
        fence_cancel(&op->fence);
    else if (is_acquire(op))
        acquire_cancel(&op->machine.acquire);
    else
        round_cancel(&op->machine.round);
}

static inline enum verdict machine_verdict(const struct operation *op)
{
    if (op->fencing)
        return fence_verdict(&op->fence);
    return is_acquire(op) ? acquire_verdict(&op->machine.acquire)
                          : round_verdict(&op->machine.round);
}

static inline uint64_t machine_wake(const struct operation *op)
{
    if (op->fencing)
        return fence_wake(&op->fence);
    return is_acquire(op) ? acquire_wake(&op->machine.acquire)
                          : round_wake(&op->machine.round);
}

static inline enum fault machine_fault(const struct operation *op)
{
    if (op->fencing)
        return op->fence.fault;
    return is_acquire(op) ? op->machine.acquire.fault
                          : op->machine.round.fault;
}

#endif
