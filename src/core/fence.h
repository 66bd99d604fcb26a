/* SPDX-License-Identifier: MIT */
/*
 * Makes the fencing token (a number) of a grant by N >= 1 servers. Each server
 * that grants returns the next number of its own counter. The fencing token, or
 * fence, is the highest of them, and counts only when a quorum has it: the
 * counter of a server that is behind is raised, if the lock's token is still
 * there.
 *
 * Why it grows: two grants share a server that had both tokens, one after the
 * other, each until its counter was raised. So the counter had been raised to
 * the first fence before the server drew a number for the second grant, whose
 * fence is therefore higher. No clock is involved, so this holds even while
 * both clients believe that they hold the lock. It needs servers that do not
 * lose their counters, and a token that was set at most once on each server. A
 * server whose counter is above the fence (its grant came too late to be
 * counted) proves nothing and is not counted.
 *
 * A lock that was handed over by the only server has no number yet: it is drawn
 * while the lock's token is there.
 *
 * Invariant: VERDICT_YES needs a quorum whose counters were exactly at the
 * fence while they had the token. With any other verdict there is no fencing
 * token: the driver undoes the grant, and acquire_again() plans another round.
 */
#ifndef NXLOCK_CORE_FENCE_H
#define NXLOCK_CORE_FENCE_H

#include "core/machine.h"

struct fence_terms {
    unsigned servers;
    struct ballot *ballots; /* one a server; its fence is the one granted */
    uint64_t end; /* of the call or of the lease, whichever is first */
};

struct fence {
    struct fence_terms terms;
    /* The fence, to which EFFECT_SEND raises a server's counter; 0: the server
     * draws the next number. */
    uint64_t value;
    enum fault fault : 8;      /* the worst fault that was met */
    enum verdict decision : 8; /* reached, though effects may be left */
    unsigned char permanent;   /* servers with a fault that is not transient */
    enum phase phase : 8;      /* private */
    unsigned unanswered;       /* servers that had not answered by its end */
};

void fence_start(struct fence *f, const struct fence_terms *terms);
/* EFFECT_SEND: raise the counter, if the key holds the token. Or
 * EFFECT_ABANDON. */
bool fence_next(struct fence *f, struct effect *effect);
/* OUTCOME_MINE: the key holds the token, and the counter is now at
 * outcome->fence. */
void fence_outcome(
    struct fence *f, unsigned server, const struct outcome *outcome);
void fence_tick(struct fence *f, uint64_t now);
void fence_cancel(struct fence *f);
uint64_t fence_wake(const struct fence *f);
enum verdict fence_verdict(const struct fence *f);

#endif
