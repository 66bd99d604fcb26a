/* SPDX-License-Identifier: MIT */
/*
 * A round of extend, release, adopt, inspect or tell over N >= 1 servers: one
 * verb is sent to all at once, and the round ends as soon as the vote is
 * decided. These verbs may be applied twice without harm, so a server whose
 * connection was lost before it answered is asked again while there is time.
 *
 * Invariant: a deadline comes only from a quorum of MINE, counted from the
 * first send to each server. "Not mine" is UNKNOWN after a try that may have
 * been applied and may be why: a release, or a verdict that gives the lock
 * back. Every server at which a release may be unfinished gets an EFFECT_UNDO.
 */
#ifndef NXLOCK_CORE_ROUND_H
#define NXLOCK_CORE_ROUND_H

#include <stdbool.h>

#include "base/backoff.h"
#include "core/machine.h"

enum round_kind {
    ROUND_EXTEND,
    ROUND_RELEASE,
    ROUND_CAP, /* a release before the minimum hold is over: the key stays so
                * long */
    ROUND_ADOPT,
    ROUND_INSPECT,
    ROUND_TELL,
    ROUND_TELL_OPEN /* a verdict after which somebody else may begin */
};

struct round_terms {
    enum round_kind kind;
    unsigned servers;
    struct ballot *ballots; /* one a server */
    uint32_t
        ttl_ms; /* EXTEND, CAP: to ask for. ADOPT: if the key never expires */
    uint32_t drift_ppm;
    uint64_t end; /* the call ends */
};

struct round {
    struct round_terms terms;
    struct backoff backoff; /* the driver inits it before round_start */
    uint64_t deadline;      /* VERDICT_YES of EXTEND, ADOPT: the new one */
    enum fault fault;       /* VERDICT_UNKNOWN, VERDICT_FAULT: the worst */
    enum verdict decision;  /* decided, though effects may be left to take */

    /* private */
    enum phase phase;
};

/* Delays before a server is asked again after its connection was lost: of
 * round.backoff. */
#define ROUND_AGAIN_FIRST (5 * NS_PER_MS)
#define ROUND_AGAIN_MAX (100 * NS_PER_MS)

void round_start(
    struct round *r, const struct round_terms *terms, uint64_t now);
bool round_next(struct round *r, struct effect *effect);
void round_outcome(struct round *r, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After an EFFECT_UNDO or EFFECT_ABANDON: no byte of the last try had been
 * sent. */
void round_withdrawn(struct round *r, unsigned server);
void round_tick(struct round *r, uint64_t now);
void round_cancel(struct round *r);
uint64_t round_wake(const struct round *r);
enum verdict round_verdict(const struct round *r);

#endif
