/* SPDX-License-Identifier: MIT */
/*
 * The vote of all servers on one call, from the first request to the verdict:
 * an acquire together with its wait in line and its fencing token, or a round
 * of any other verb. It puts the machines of acquire.h, line.h, fence.h and
 * round.h behind one interface; their headers say what each guarantees.
 *
 * Invariant: an acquire that wants a fencing token ends with VERDICT_YES only
 * when a quorum has that token; without it, the grant is undone first.
 */
#ifndef NXLOCK_CORE_VOTE_H
#define NXLOCK_CORE_VOTE_H

#include "core/acquire.h"
#include "core/fence.h"
#include "core/line.h"
#include "core/round.h"

struct vote {
    enum { VOTE_ACQUIRE, VOTE_ROUND } kind : 8;
    bool fenced;       /* ACQUIRE: a fencing token is wanted */
    bool begins;       /* ACQUIRE: by the verb BEGIN, which draws one */
    bool fencing;      /* counters are being raised to the fencing token */
    bool lined_up;     /* ACQUIRE: it waits in line, or has */
    bool handed_over;  /* ACQUIRE: granted after a wait in line */
    struct line *line; /* ACQUIRE: it waits in line; NULL: it does not */
    union {
        struct acquire acquire;
        struct round round;
    };
    struct fence fence;
    struct ballot *ballots; /* VOTE_BALLOTS a server, those of fence last */
};
#define VOTE_BALLOTS 2

/* begins: by the verb BEGIN. seed: for jitter; must differ between
 * contenders. */
void vote_acquire(struct vote *v, const struct acquire_terms *terms,
    bool fenced, bool begins, uint64_t retry_first_ns, uint64_t retry_most_ns,
    uint64_t seed, uint64_t now);
void vote_round(struct vote *v, const struct round_terms *terms, uint64_t seed,
    uint64_t now);

/* ACQUIRE that has just begun, or for which acquire_may_line_up(): waits in
 * line from now on. line is the driver's memory, and outlives the call. */
void vote_line_up(struct vote *v, struct line *line,
    const struct line_terms *terms, uint64_t seed, uint64_t now);

/* As in machine.h. */
bool vote_next(struct vote *v, struct ask *ask);
void vote_outcome(struct vote *v, unsigned server,
    const struct outcome *outcome, uint64_t now);
void vote_withdrawn(struct vote *v, unsigned server);
void vote_tick(struct vote *v, uint64_t now);
void vote_cancel(struct vote *v);
uint64_t vote_wake(const struct vote *v);
enum verdict vote_verdict(const struct vote *v);
/* ACQUIRE with VERDICT_YES: its fencing token; 0: none. */
uint64_t vote_fence(const struct vote *v);
enum fault vote_fault(const struct vote *v);

/* What the verdict calls for, once all asks have been taken. */
enum vote_step {
    VOTE_OPEN,    /* no verdict yet */
    VOTE_GOES_ON, /* the fencing token comes next: take asks again */
    VOTE_UNDO,    /* no fencing token: undo the grant, then vote_again() */
    VOTE_OVER     /* vote_verdict() is final */
};
enum vote_step vote_step(struct vote *v, uint64_t now);
void vote_again(struct vote *v, uint64_t now);

#endif
