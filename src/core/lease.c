/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a deadline is never later than sent_at + ttl - drift, whatever the
 * numbers; nothing here can wrap round. (ttl in ms times ppm is already ns,
 * and 64 bits hold the product of any two 32-bit numbers and the constants.)
 */
#include "core/lease.h"

#include "base/deadline.h"
#include "base/guard.h"

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
    uint64_t kept = PPM - drift_ppm; /* ns of each ms of a ttl */
    return (uint32_t)((needed + kept - 1) / kept);
}
