/* SPDX-License-Identifier: MIT */
/*
 * Keeps a held lease alive: extends it by the schedule, checks who holds the
 * name when a server says that the token is gone, and decides when and why the
 * lease is lost. A machine like the others (machine.h). All functions accept
 * NULL: a lock that is not renewed.
 *
 * Invariant: a renewal only moves the deadline of a lease that is held; a loss
 * is decided before the deadline, and once; after renewal_stop() nothing more
 * is sent.
 */
#ifndef NXLOCK_CORE_RENEWAL_H
#define NXLOCK_CORE_RENEWAL_H

#include "core/lease.h"
#include "core/round.h"
#include "core/schedule.h"

enum loss {
    LOSS_NO_ANSWER, /* extends failed or were not answered in time */
    LOSS_MAX_HOLD,  /* the maximum hold is over */
    LOSS_STOPPED,   /* this process did not run in time */
    LOSS_TOKEN_GONE /* the token is gone, says a quorum: see inspect_verdict */
};

struct renewal_terms {
    unsigned servers;
    struct ballot *ballots; /* one a server */
    uint32_t ttl_ms, drift_ppm;
    uint64_t timeout_ns; /* of one call */
    uint64_t copies_ns;  /* how long WAIT may take; 0: none is sent */
};

struct renewal {
    struct renewal_terms terms;
    struct schedule schedule;
    struct round round; /* the current or the last round of extends or checks */
    enum renewal_state {
        RENEWAL_OFF,
        RENEWAL_WAITING,    /* until the schedule says that one is due */
        RENEWAL_EXTENDING,  /* an extend is under way */
        RENEWAL_INSPECTING, /* the lease is lost: who holds the name now? */
        RENEWAL_CLOSING     /* its last effects are being taken; then .next */
    } state;
    enum renewal_state next;
    uint64_t inspect_until;
    uint64_t seed;
    unsigned rounds; /* begun so far */
    bool ticked; /* look at the schedule, but take answers that came at the same
                  * time first */
    /* The last loss. */
    enum loss loss;
    uint64_t unheard_ns;          /* NO_ANSWER: how long renewals have failed */
    enum verdict inspect_verdict; /* TOKEN_GONE: of the INSPECT round
                                   * after it: YES: another value, NO: free,
                                   * else unknown */
};

enum renewal_event {
    RENEWAL_NOTHING, /* more effects may have become due */
    RENEWAL_RENEWED, /* the lease has been extended */
    RENEWAL_FAILED,  /* it will be tried again */
    RENEWAL_LOST
};

/* The lease was granted just now. */
void renewal_start(struct renewal *r, const struct renewal_terms *terms,
    const struct lease *lease, uint64_t seed, uint64_t now);
/* A call has extended the lease. */
void renewal_extended(
    struct renewal *r, const struct lease *lease, uint64_t now);
/* A call learnt that the token is gone: the lease is lost. */
void renewal_token_gone(struct renewal *r, struct lease *lease, uint64_t now);
/* The lease is not extended beyond `ends` from now on. */
void renewal_limit(struct renewal *r, uint64_t ends);
/* What a server has may have been lost: renews now, which tells. */
void renewal_hurry(struct renewal *r, uint64_t now);
/* Stops renewing. Effects of kind EFFECT_ABANDON may follow. */
void renewal_stop(struct renewal *r);

bool renewal_next(struct renewal *r, struct effect *effect);
void renewal_outcome(struct renewal *r, unsigned server,
    const struct outcome *outcome, uint64_t now);
void renewal_tick(struct renewal *r, uint64_t now);
/* Call it when all effects have been taken, again and again until it returns
 * NOTHING and renewal_next() false: says what has happened. */
enum renewal_event renewal_step(
    struct renewal *r, struct lease *lease, uint64_t now);
uint64_t renewal_wake(const struct renewal *r);

/* Does the schedule say that the next extend is due? */
static inline bool renewal_due(const struct renewal *r, uint64_t now)
{
    return r->state == RENEWAL_WAITING &&
           schedule_due(&r->schedule, now) == SCHEDULE_RENEW;
}

/* Is an answer from a server due? */
static inline bool renewal_busy(const struct renewal *r)
{
    return r &&
           (r->state == RENEWAL_EXTENDING || r->state == RENEWAL_INSPECTING);
}

/* Is the lease being renewed, with no loss decided? */
static inline bool renewal_on(const struct renewal *r)
{
    return r && (r->state == RENEWAL_WAITING || r->state == RENEWAL_EXTENDING);
}

#endif
