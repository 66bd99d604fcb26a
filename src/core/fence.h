/* SPDX-License-Identifier: MIT */
/*
 * A fencing token (a number) over N >= 1 servers. Each server that grants gives
 * the next number of its own; the fence is the highest of those, and it counts
 * only when a quorum has it: a server that is behind is raised to it, on
 * condition that the token still stands there.
 *
 * Why it grows. Two grants have a server in common that had both tokens, one
 * after the other, each until it was raised. So it had been raised to the
 * first fence before it gave its number to the second, whose fence is higher.
 * That needs no clock: it holds also where both believe in the lock. It needs
 * servers that do not forget their numbers, and a token that was set at most
 * once at each. A server that gave more than the fence (its grant came too
 * late to be counted) proves nothing for this fence, and is not counted.
 *
 * Invariant: VERDICT_YES only with a quorum that has exactly the fence, each
 * while it had the token. With any other verdict there is no fence: the driver
 * undoes the acquire, and acquire_again() waits for another one.
 */
#ifndef NXLOCK_CORE_FENCE_H
#define NXLOCK_CORE_FENCE_H

#include "core/machine.h"

struct fence_terms {
    unsigned servers;
    struct ballot *ballots; /* one a server; its number is the one granted */
    uint64_t end; /* of the call or of the lease, whichever is first */
};

struct fence {
    struct fence_terms terms;
    uint64_t number;      /* the fence: what ASK_SEND raises a server to */
    enum fault fault;     /* the worst that was met */
    unsigned lasting;     /* servers with a fault that will not pass */
    unsigned silent;      /* servers that its end found unanswered */
    enum verdict verdict; /* reached, though asks may be left */

    /* private */
    enum phase phase;
};

void fence_start(struct fence *f, const struct fence_terms *terms);
/* ASK_SEND: if the token stands there, raise the name's number; ASK_LEAVE. */
bool fence_next(struct fence *f, struct ask *ask);
/* OUTCOME_MINE: the token stands, and now the name's number is as told. */
void fence_outcome(struct fence *f, unsigned server,
    const struct outcome *outcome, uint64_t number);
void fence_tick(struct fence *f, uint64_t now);
void fence_cancel(struct fence *f);
uint64_t fence_wake(const struct fence *f);
enum verdict fence_verdict(const struct fence *f);

#endif
