/* SPDX-License-Identifier: MIT */
/*
 * All that one call asks of the servers, from the first request to the verdict:
 * an acquire together with its wait in line and its fencing token, or a round
 * of any other verb. It puts the machines of acquire.h, line.h, fence.h and
 * round.h behind one interface; their headers say what each guarantees. It does
 * not count answers itself: acquire.c, fence.c and round.c do, by tally_of() of
 * core/machine.h.
 *
 * Some grants need a second verb before they count, BEGIN, RAISE or EXTEND:
 * each is a condition, a row of the table in vote.c. It is met after the lock
 * was granted, by the servers or in line, with the same token. Now a call wants
 * one condition at most (conditions_of() in calls.c); of several they would be
 * met one after the other.
 *
 * Invariant: an acquire ends with VERDICT_YES only when all its conditions are
 * met; else the grant is undone first.
 */
#ifndef NXLOCK_CORE_VOTE_H
#define NXLOCK_CORE_VOTE_H

#include "core/acquire.h"
#include "core/fence.h"
#include "core/line.h"
#include "core/round.h"

/* The conditions of a grant, in the order in which they are worked off. */
enum vote_condition {
    CONDITION_NONE,
    CONDITION_BEGIN, /* BEGIN has recorded that the work begins */
    CONDITION_FENCE, /* a quorum has the fencing token */
    /* Replicas have the lock that was granted in line: EXTEND, with a WAIT
     * behind it. Only where no other condition writes. */
    CONDITION_COPIES,
    CONDITIONS
};

struct vote {
    /* The machine that is running, or was last. All but ROUND: an acquire. */
    enum { VOTE_ACQUIRE, VOTE_LINE, VOTE_FENCE, VOTE_ROUND } machine : 8;
    enum vote_condition condition : 8; /* of this grant: the latest so far */
    unsigned char wanted; /* conditions, a bit each: 1U << CONDITION_... */
    bool by_line;         /* JOIN or STAY has granted the token */
    bool lined_up;        /* it waits in line, or has */
    bool handed_over;     /* granted after a wait in line */
    /* CONDITION_FENCE: the lock is granted, and RAISE is sent. Its answers say
     * nothing about where the token is. (The EXTEND of CONDITION_COPIES is one
     * more round of the acquire, and its answers do.) */
    bool raising_fence;
    struct line *line; /* VOTE_LINE; else NULL */
    union {
        struct acquire acquire;
        struct round round;
    };
    struct fence fence;
    struct ballot *ballots; /* VOTE_BALLOTS a server, those of fence last */
};
#define VOTE_BALLOTS 2

/* wanted: as in struct vote. seed: for jitter; must differ between contenders.
 */
void vote_acquire(struct vote *v, const struct acquire_terms *terms,
    unsigned wanted, uint64_t retry_first_ns, uint64_t retry_max_ns,
    uint64_t seed, uint64_t now);
void vote_round(struct vote *v, const struct round_terms *terms, uint64_t seed,
    uint64_t now);

/* ACQUIRE that has just begun, or for which acquire.may_line_up: waits in
 * line from now on. line is the driver's memory, and outlives the call. */
void vote_line_up(struct vote *v, struct line *line,
    const struct line_terms *terms, uint64_t seed, uint64_t now);

/* As in machine.h. A verdict may not be final: see vote_step(). */
bool vote_next(struct vote *v, struct effect *effect);
void vote_outcome(struct vote *v, unsigned server,
    const struct outcome *outcome, uint64_t now);
void vote_withdrawn(struct vote *v, unsigned server);
void vote_tick(struct vote *v, uint64_t now);
void vote_cancel(struct vote *v);

/* What follows a verdict of vote_next(). Without a condition that is wanted
 * every verdict is final. */
enum vote_step {
    VOTE_GOES_ON, /* the next condition is begun: take effects again */
    VOTE_UNDO, /* a condition is not met: undo the grant, then vote_again() */
    VOTE_OVER  /* the verdict is final */
};
enum vote_step vote_step(struct vote *v, enum verdict verdict, uint64_t now);
void vote_again(struct vote *v, uint64_t now);

/* While a condition is worked off: completes the verb of its requests, with its
 * kind. */
void vote_complete(const struct vote *v, struct verb *verb);

/* Has the line granted the lock to the token that the requests have? */
static inline bool vote_token_is_held(const struct vote *v)
{
    return v->machine == VOTE_ACQUIRE && v->acquire.token_is_held;
}

#endif
