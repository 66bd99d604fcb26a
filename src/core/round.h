/* SPDX-License-Identifier: MIT */
/*
 * Extend, release, adopt and inspect over N >= 1 servers: one verb, asked of
 * all at once, decided as soon as the vote is decided. These verbs may be
 * applied twice without harm, so a server whose connection broke before its
 * answer is asked again while there is time.
 *
 * Invariant: a deadline only ever comes from a quorum of MINE, computed from
 * the earliest send of each server; "not mine" after an unsure release is
 * UNKNOWN, for the first try may have deleted it; every server where a
 * release is not known to have ended has got an ASK_UNDO.
 */
#ifndef NXLOCK_CORE_ROUND_H
#define NXLOCK_CORE_ROUND_H

#include <stdbool.h>

#include "base/backoff.h"
#include "core/machine.h"

enum round_kind { ROUND_EXTEND, ROUND_RELEASE, ROUND_ADOPT, ROUND_INSPECT };

struct round_terms {
    enum round_kind kind;
    unsigned servers;
    struct ballot *ballots; /* one a server */
    uint32_t ttl_ms; /* EXTEND: asked for. ADOPT: of a key without an end */
    uint32_t drift_ppm;
    uint64_t end; /* the call ends */
};

struct round {
    struct round_terms terms;
    struct backoff backoff; /* the driver inits it before round_start */
    uint64_t deadline;      /* VERDICT_YES of EXTEND, ADOPT: the new one */
    enum fault fault;       /* VERDICT_UNKNOWN, VERDICT_FAULT: the worst */
    enum verdict verdict;   /* reached, though asks may be left */

    /* private */
    enum phase phase;
};

/* Before round_start(): the delays before a server is asked again. seed: for
 * jitter. */
void round_init_backoff(struct round *r, uint64_t seed);
void round_start(
    struct round *r, const struct round_terms *terms, uint64_t now);
bool round_next(struct round *r, struct ask *ask);
void round_outcome(struct round *r, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After an ASK_UNDO or ASK_LEAVE: not a byte of the last try had left. */
void round_withdrawn(struct round *r, unsigned server);
void round_tick(struct round *r, uint64_t now);
void round_cancel(struct round *r);
uint64_t round_wake(const struct round *r);
enum verdict round_verdict(const struct round *r);

#endif
