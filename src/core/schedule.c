/* SPDX-License-Identifier: MIT */
/*
 * When a lease is to be renewed, and when it counts as lost.
 *
 * Invariant: the loss is decided before the deadline, and from the deadline
 * alone, never from the next renewal; a failed renewal is tried again soon, so
 * that an outage that ends before the lease does is survived.
 */
#include "core/schedule.h"

#include "base/deadline.h"
#include "model/guard.h"

/* Renew every third of the lease, as is customary: two renewals may fail. */
#define PER_LEASE 3
/* Renewals are planned on a grid of a thousandth of the lease, so that those of
 * many locks are sent in one write. */
#define GRID_PER_LEASE 1000
/* The delay after a failure: a tenth of the lease, at most a second. */
#define RETRY_PER_LEASE 10
#define RETRY_MAX NS_PER_S
/* A loss is reported before the deadline, so that the owner can still act on
 * it. */
#define LEAD_PER_LEASE 20
#define LEAD_MIN (2 * NS_PER_MS)
#define LEAD_MAX (500 * NS_PER_MS)
/* How long to wait for one answer, without WAIT. */
#define ANSWER_PER_LEASE 10
#define ANSWER_MIN (50 * NS_PER_MS)

static uint64_t lease_of(const struct schedule *h)
{
    return ms_to_ns(h->terms.ttl_ms);
}

static uint64_t period_of(const struct schedule *h)
{
    return lease_of(h) / PER_LEASE;
}

uint64_t schedule_lost_at(const struct schedule *h)
{
    uint64_t lead = lease_of(h) / LEAD_PER_LEASE;
    if (!guarded(GUARD_LOSS))
        return NEVER;
    lead = earlier(later(lead, LEAD_MIN), LEAD_MAX);
    return h->deadline > lead ? h->deadline - lead : 0;
}

/* A random time from `percent` percent of whole to all of it. */
static uint64_t spread(struct schedule *h, uint64_t whole, unsigned percent)
{
    uint64_t least = whole / 100 * percent;
    return least + backoff_random(&h->jitter, whole - least + 1);
}

static uint64_t on_grid(const struct schedule *h, uint64_t at)
{
    return at - at % (lease_of(h) / GRID_PER_LEASE);
}

static void plan_renewal(struct schedule *h, uint64_t delay, uint64_t now)
{
    /* The lease is nearly as long as it may become: stop renewing. */
    h->ends = deadline_after(h->deadline, period_of(h) / 4) >= h->terms.ends;
    h->renew_at = h->ends ? NEVER : on_grid(h, deadline_after(now, delay));
}

void schedule_start(
    struct schedule *h, const struct schedule_terms *terms, uint64_t now)
{
    *h = (struct schedule){.terms = *terms, .deadline = terms->deadline};
    backoff_init(&h->jitter, 1, 1, terms->seed);
    /* Locks that were granted together are not renewed together; one that was
     * granted late, or adopted, may have little time left. */
    uint64_t left = deadline_left(terms->deadline, now);
    plan_renewal(h, spread(h, earlier(period_of(h), left / 2), 20), now);
}

enum schedule_due schedule_due(const struct schedule *h, uint64_t now)
{
    if (now >= schedule_lost_at(h))
        return SCHEDULE_LOST;
    return now >= h->renew_at ? SCHEDULE_RENEW : SCHEDULE_WAIT;
}

uint64_t schedule_wake(const struct schedule *h)
{
    return earlier(schedule_lost_at(h), h->renew_at);
}

uint32_t schedule_ttl_ms(const struct schedule *h, uint64_t now)
{
    uint64_t left_ms = deadline_left(h->terms.ends, now) / NS_PER_MS;
    return (uint32_t)earlier(h->terms.ttl_ms, left_ms);
}

uint64_t schedule_answer_by(
    const struct schedule *h, uint64_t timeout_ns, uint64_t now)
{
    uint64_t share = later(lease_of(h) / ANSWER_PER_LEASE, ANSWER_MIN);
    /* It is sent when the WAIT before it has been answered, and answered when
     * its own is. */
    share += 2 * h->terms.copies_ns;
    return earlier(
        deadline_after(now, earlier(share, timeout_ns)), schedule_lost_at(h));
}

void schedule_hurry(struct schedule *h, uint64_t now)
{
    if (h->renew_at != NEVER)
        h->renew_at = earlier(h->renew_at, now);
}

void schedule_renewal_begun(struct schedule *h, uint64_t now)
{
    h->begun_at = now;
    h->renew_at = NEVER;
}

void schedule_renewed(struct schedule *h, uint64_t deadline, uint64_t now)
{
    /* Count from when it was asked, so that the rate does not depend on how
     * long the answer took. */
    uint64_t from = h->begun_at ? h->begun_at : now;
    h->deadline = later(h->deadline, deadline);
    h->begun_at = h->failing_since = 0;
    plan_renewal(h, spread(h, period_of(h), 90), from);
}

void schedule_extended(struct schedule *h, uint64_t deadline, uint64_t now)
{
    h->deadline = later(h->deadline, deadline);
    if (h->begun_at)
        return; /* its answer plans the next one */
    h->failing_since = 0;
    plan_renewal(h, spread(h, period_of(h), 90), now);
}

void schedule_failed(struct schedule *h, uint64_t now)
{
    uint64_t delay = earlier(lease_of(h) / RETRY_PER_LEASE, RETRY_MAX);
    if (!h->failing_since)
        h->failing_since = h->begun_at ? h->begun_at : now;
    h->begun_at = 0;
    h->renew_at = on_grid(h, deadline_after(now, spread(h, delay, 50)));
}
