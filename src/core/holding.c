/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the loss is known before the deadline, and comes from the deadline
 * alone, never from the next renewal; a failed renewal is tried again soon, so
 * that an outage up to the end of the lease is survived.
 */
#include "core/holding.h"

#include "base/deadline.h"
#include "base/guard.h"

/* A renewal each third of the lease: two may fail. (The customary rate.) */
#define PER_LEASE 3
/* Renewals that are due within a thousandth of the lease go in one write. */
#define GRID_PER_LEASE 1000
/* After a failure: a tenth of the lease, a second at most. */
#define RETRY_PER_LEASE 10
#define RETRY_MOST NS_PER_S
/* Loss is told before the deadline, so that its owner can still act on it. */
#define LEAD_PER_LEASE 20
#define LEAD_LEAST (2 * NS_PER_MS)
#define LEAD_MOST (500 * NS_PER_MS)
/* One answer is waited for as long. */
#define PATIENCE_PER_LEASE 10
#define PATIENCE_LEAST (50 * NS_PER_MS)

static uint64_t lease_of(const struct holding *h)
{
    return ms_to_ns(h->terms.ttl_ms);
}

static uint64_t period_of(const struct holding *h)
{
    return lease_of(h) / PER_LEASE;
}

uint64_t holding_lost_at(const struct holding *h)
{
    uint64_t lead = lease_of(h) / LEAD_PER_LEASE;
    if (!guarded(GUARD_LOSS))
        return NEVER;
    lead = earlier(later(lead, LEAD_LEAST), LEAD_MOST);
    return h->deadline > lead ? h->deadline - lead : 0;
}

/* From share/100 of whole to all of it, at random. */
static uint64_t spread(struct holding *h, uint64_t whole, unsigned share)
{
    uint64_t least = whole / 100 * share;
    return least + backoff_random(&h->jitter, whole - least + 1);
}

static uint64_t on_grid(const struct holding *h, uint64_t at)
{
    return at - at % (lease_of(h) / GRID_PER_LEASE);
}

static void plan(struct holding *h, uint64_t delay, uint64_t now)
{
    /* As good as all of the time that may be: no more of these. */
    bool enough = deadline_after(h->deadline, period_of(h) / 4) >=
                  h->terms.ends;
    h->renew_at = enough ? NEVER : on_grid(h, deadline_after(now, delay));
}

void holding_begin(
    struct holding *h, const struct holding_terms *terms, uint64_t now)
{
    *h = (struct holding){.terms = *terms, .deadline = terms->deadline};
    backoff_init(&h->jitter, 1, 1, terms->seed);
    /* Locks that were granted together are not renewed together; one that was
     * granted late, or taken over, may have little left. */
    uint64_t left = deadline_left(terms->deadline, now);
    plan(h, spread(h, earlier(period_of(h), left / 2), 20), now);
}

enum holding_due holding_due(const struct holding *h, uint64_t now)
{
    if (now >= holding_lost_at(h))
        return HOLDING_LOST;
    return now >= h->renew_at ? HOLDING_RENEW : HOLDING_WAIT;
}

uint64_t holding_wake(const struct holding *h)
{
    return earlier(holding_lost_at(h), h->renew_at);
}

uint32_t holding_ttl_ms(const struct holding *h, uint64_t now)
{
    uint64_t left_ms = deadline_left(h->terms.ends, now) / NS_PER_MS;
    return (uint32_t)earlier(h->terms.ttl_ms, left_ms);
}

uint64_t holding_patience(
    const struct holding *h, uint64_t timeout_ns, uint64_t now)
{
    uint64_t share = later(lease_of(h) / PATIENCE_PER_LEASE, PATIENCE_LEAST);
    return earlier(deadline_after(now, earlier(share, timeout_ns)),
        holding_lost_at(h));
}

void holding_asked(struct holding *h, uint64_t now)
{
    h->asked_at = now;
    h->renew_at = NEVER;
}

void holding_prolonged(struct holding *h, uint64_t deadline, uint64_t now)
{
    /* From when it was asked, so that the rate does not depend on how long
     * the answer took. */
    uint64_t from = h->asked_at ? h->asked_at : now;
    h->deadline = later(h->deadline, deadline);
    h->asked_at = h->failing_since = 0;
    plan(h, spread(h, period_of(h), 90), from);
}

void holding_moved(struct holding *h, uint64_t deadline, uint64_t now)
{
    h->deadline = later(h->deadline, deadline);
    if (h->asked_at)
        return; /* its answer plans the next one */
    h->failing_since = 0;
    plan(h, spread(h, period_of(h), 90), now);
}

void holding_failed(struct holding *h, uint64_t now)
{
    uint64_t delay = earlier(lease_of(h) / RETRY_PER_LEASE, RETRY_MOST);
    if (!h->failing_since)
        h->failing_since = h->asked_at ? h->asked_at : now;
    h->asked_at = 0;
    h->renew_at = on_grid(h, deadline_after(now, spread(h, delay, 50)));
}
