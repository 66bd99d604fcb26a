/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic and the states of a lease.
 *
 * Invariant: a deadline is never later than sent_at + ttl - drift, whatever
 * the numbers; nothing here can wrap round. (ttl in ms times ppm is already
 * ns, and 64 bits hold the product of any two 32-bit numbers and the
 * constants.)
 */
#include "core/lease.h"

#include "base/deadline.h"
#include "model/guard.h"

#define ROUNDING_NS (2 * NS_PER_MS)
#define PPM UINT64_C(1000000)

uint64_t lease_drift_ns(uint32_t ttl_ms, uint32_t drift_ppm)
{
    return (uint64_t)ttl_ms * drift_ppm + ROUNDING_NS;
}

uint64_t lease_deadline(uint64_t sent_at, uint32_t ttl_ms, uint32_t drift_ppm)
{
    uint64_t ttl = ms_to_ns(ttl_ms);
    uint64_t drift =
        guarded(GUARD_DRIFT) ? lease_drift_ns(ttl_ms, drift_ppm) : 0;
    if (drift >= ttl)
        return 0;
    return deadline_after(sent_at, ttl - drift);
}

uint64_t lease_ttl_of_drift_ms(uint64_t drift_ns, uint32_t drift_ppm)
{
    if (drift_ns <= ROUNDING_NS)
        return 0;
    uint64_t of_rate = drift_ns - ROUNDING_NS;
    return of_rate / drift_ppm + (of_rate % drift_ppm != 0);
}

bool lease_usable(uint32_t ttl_ms, uint32_t drift_ppm)
{
    return ms_to_ns(ttl_ms) >=
           lease_drift_ns(ttl_ms, drift_ppm) + LEASE_USABLE_MS * NS_PER_MS;
}

uint32_t lease_least_ttl_ms(uint32_t drift_ppm)
{
    if (drift_ppm >= PPM)
        return UINT32_MAX;
    uint64_t needed = LEASE_USABLE_MS * NS_PER_MS + ROUNDING_NS;
    uint64_t kept = PPM - drift_ppm; /* ns of each ms of a TTL */
    return (uint32_t)((needed + kept - 1) / kept);
}

static void set_deadline(struct lease *lease, uint64_t deadline)
{
    atomic_store_explicit(&lease->deadline, deadline, memory_order_release);
}

bool lease_held(const struct lease *lease, uint64_t now)
{
    return now < atomic_load_explicit(&lease->deadline, memory_order_acquire);
}

enum lease_state lease_state(const struct lease *lease, uint64_t now)
{
    if (lease->stored == LEASE_HELD && !lease_held(lease, now))
        return LEASE_EXPIRED;
    return lease->stored;
}

void lease_grant(struct lease *lease, uint64_t deadline, uint32_t min_hold_ms,
    uint64_t max_hold_ns, uint64_t now)
{
    lease->stored = LEASE_HELD;
    lease->granted_at = now;
    lease->min_until = deadline_after_ms(now, min_hold_ms);
    lease->ends = deadline_after(now, max_hold_ns);
    lease->promised = earlier(deadline, lease->ends);
    set_deadline(lease, lease->promised);
}

void lease_extend(struct lease *lease, uint64_t deadline)
{
    uint64_t old = atomic_load(&lease->deadline);
    lease->stored = LEASE_HELD;
    lease->promised = earlier(later(old, deadline), lease->ends);
    set_deadline(lease, lease->promised);
}

void lease_limit(struct lease *lease, uint64_t ends)
{
    lease->ends = ends;
    lease->promised = earlier(lease->promised, ends);
    if (atomic_load(&lease->deadline) > lease->promised)
        set_deadline(lease, lease->promised);
}

static uint64_t lease_age(const struct lease *lease, uint64_t now)
{
    return lease->granted_at ? elapsed(lease->granted_at, now) : 0;
}

static void count_held(struct lease *lease, uint64_t now)
{
    lease->held_ns += lease_age(lease, now);
    lease->granted_at = 0;
}

void lease_lose(struct lease *lease, uint64_t now)
{
    count_held(lease, now);
    if (lease->stored == LEASE_HELD)
        lease->stored = LEASE_LOST;
    set_deadline(lease, 0);
}

void lease_end(struct lease *lease, uint64_t now)
{
    count_held(lease, now);
    lease->stored = LEASE_NONE;
    set_deadline(lease, 0);
}

bool lease_extendable(const struct lease *lease, uint64_t now)
{
    return lease_state(lease, now) == LEASE_HELD || !guarded(GUARD_LAPSED);
}

uint64_t lease_ours_until(const struct lease *lease)
{
    return lease->promised && guarded(GUARD_EXPIRED) ? lease->promised : NEVER;
}

uint32_t lease_min_left_ms(const struct lease *lease, uint64_t now)
{
    uint64_t left = deadline_left(lease->min_until, now);
    return (uint32_t)((left + NS_PER_MS - 1) / NS_PER_MS);
}

struct lease_rest lease_rest(const struct lease *lease, uint64_t now)
{
    return (struct lease_rest){
        .held = lease_held(lease, now),
        .held_ns = lease_age(lease, now),
        .ours_until = lease_ours_until(lease),
        .min_left_ms = lease_min_left_ms(lease, now),
    };
}
