/* SPDX-License-Identifier: MIT */
/*
 * Decides when to renew the lease of one lock, and when it counts as lost. A
 * machine like the others: its driver reports the time and what was done, and
 * it says what is due. Jitter keeps many locks from being renewed at the same
 * moment.
 */
#ifndef NXLOCK_CORE_SCHEDULE_H
#define NXLOCK_CORE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/backoff.h"

struct schedule_terms {
    uint32_t ttl_ms;    /* of each renewal */
    uint64_t deadline;  /* of the lease as it was granted */
    uint64_t ends;      /* it is not extended beyond; NEVER: no limit */
    uint64_t seed;      /* for jitter; differs between locks */
    uint64_t copies_ns; /* how long WAIT behind a renewal may take; 0: none is
                         * sent */
};

enum schedule_due { SCHEDULE_WAIT, SCHEDULE_RENEW, SCHEDULE_LOST };

struct schedule {
    struct schedule_terms terms;
    uint64_t deadline;      /* of the lease as it is now */
    uint64_t renew_at;      /* NEVER: one is under way, or none is wanted */
    uint64_t begun_at;      /* when the one under way was begun; 0: none is */
    uint64_t failing_since; /* the first failure after the last success; or 0 */
    bool ends;              /* no other renewal is wanted: see terms.ends */
    struct backoff jitter;
};

/* Starts the schedule when the lease is granted. */
void schedule_start(
    struct schedule *h, const struct schedule_terms *terms, uint64_t now);

/* What to do at now. RENEW: then call schedule_renewal_begun(). LOST: the lease
 * can no longer be extended in time; nothing else is due. */
enum schedule_due schedule_due(const struct schedule *h, uint64_t now);
/* When the lease counts as lost unless it is extended before. */
uint64_t schedule_lost_at(const struct schedule *h);
/* When to call schedule_due() again. */
uint64_t schedule_wake(const struct schedule *h);

/* The ttl to ask for in a renewal that begins now. */
uint32_t schedule_ttl_ms(const struct schedule *h, uint64_t now);
/* Until when to wait for its answer. */
uint64_t schedule_answer_by(
    const struct schedule *h, uint64_t timeout_ns, uint64_t now);

/* A renewal that is planned becomes due now. */
void schedule_hurry(struct schedule *h, uint64_t now);

/* Report to the schedule: a renewal has begun; it succeeded, and the lease
 * lasts until deadline; a call extended the lease, perhaps during a renewal;
 * the renewal failed, or was not answered. */
void schedule_renewal_begun(struct schedule *h, uint64_t now);
void schedule_renewed(struct schedule *h, uint64_t deadline, uint64_t now);
void schedule_extended(struct schedule *h, uint64_t deadline, uint64_t now);
void schedule_failed(struct schedule *h, uint64_t now);

#endif
