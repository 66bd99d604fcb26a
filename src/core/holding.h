/* SPDX-License-Identifier: MIT */
/*
 * A lease that is kept alive: when is it to be prolonged, and when is it lost?
 * A machine like the others: told of what was done and of the time, it says
 * what is due, and never waits. It decides for one lock; that many do not want
 * the same moment is its part, too.
 */
#ifndef NXLOCK_CORE_HOLDING_H
#define NXLOCK_CORE_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/backoff.h"

struct holding_terms {
    uint32_t ttl_ms;   /* of each renewal */
    uint64_t deadline; /* of the lease as it was granted */
    uint64_t ends;     /* beyond that it is not prolonged; NEVER */
    uint64_t seed;     /* for jitter; differs between locks */
};

enum holding_due { HOLDING_WAIT, HOLDING_RENEW, HOLDING_LOST };

struct holding {
    struct holding_terms terms;
    uint64_t deadline;      /* of the lease as it stands */
    uint64_t renew_at;      /* NEVER: one is under way, or none is wanted */
    uint64_t asked_at;      /* the one under way was begun; 0: there is none */
    uint64_t failing_since; /* the first failure after the last success; 0 */
    struct backoff jitter;
};

/* From the grant on. */
void holding_begin(
    struct holding *h, const struct holding_terms *terms, uint64_t now);

/* What is to be done at now. RENEW: then holding_asked(). LOST: the lease can
 * not be prolonged in time any more; nothing else is due. */
enum holding_due holding_due(const struct holding *h, uint64_t now);
/* When the loss is due, if the lease is not prolonged before. */
uint64_t holding_lost_at(const struct holding *h);
/* When to ask again; NEVER after a loss only. */
uint64_t holding_wake(const struct holding *h);

/* The ttl to ask for in a renewal that begins now. */
uint32_t holding_ttl_ms(const struct holding *h, uint64_t now);
/* Until when its answer is waited for. */
uint64_t holding_patience(
    const struct holding *h, uint64_t timeout_ns, uint64_t now);

/* A renewal was begun; it succeeded, and the lease stands until deadline;
 * somebody else prolonged it, while one may be under way; it failed, and
 * nothing is known. */
void holding_asked(struct holding *h, uint64_t now);
void holding_prolonged(struct holding *h, uint64_t deadline, uint64_t now);
void holding_moved(struct holding *h, uint64_t deadline, uint64_t now);
void holding_failed(struct holding *h, uint64_t now);

#endif
