/* SPDX-License-Identifier: MIT */
/* The core's two machines behind one face: acquire, and round for all else. */
#ifndef NXLOCK_API_MACHINE_H
#define NXLOCK_API_MACHINE_H

#include "api/client.h"

static inline bool is_acquire(const struct operation *op)
{
    return op->kind == NXL_OP_ACQUIRE;
}

static inline bool machine_next(struct operation *op, struct ask *ask)
{
    return is_acquire(op) ? acquire_next(&op->machine.acquire, ask)
                          : round_next(&op->machine.round, ask);
}

static inline void machine_withdrawn(struct operation *op, unsigned server)
{
    if (is_acquire(op))
        acquire_withdrawn(&op->machine.acquire, server);
    else
        round_withdrawn(&op->machine.round, server);
}

static inline void machine_outcome(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (is_acquire(op))
        acquire_outcome(&op->machine.acquire, server, outcome, now);
    else
        round_outcome(&op->machine.round, server, outcome, now);
}

static inline void machine_cancel(struct operation *op)
{
    if (is_acquire(op))
        acquire_cancel(&op->machine.acquire);
    else
        round_cancel(&op->machine.round);
}

static inline enum verdict machine_verdict(const struct operation *op)
{
    return is_acquire(op) ? acquire_verdict(&op->machine.acquire)
                          : round_verdict(&op->machine.round);
}

static inline uint64_t machine_wake(const struct operation *op)
{
    return is_acquire(op) ? acquire_wake(&op->machine.acquire)
                          : round_wake(&op->machine.round);
}

static inline enum fault machine_fault(const struct operation *op)
{
    return is_acquire(op) ? op->machine.acquire.fault
                          : op->machine.round.fault;
}

#endif
