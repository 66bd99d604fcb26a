/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a vote of a server is counted only when max_ttl + drift has passed
 * since its process began, as far as the client can know. An uptime is the
 * difference of two whole seconds, so it may be almost one too many.
 */
#include "sim/quarantine.h"

#include "base/deadline.h"
#include "core/lease.h"

void quarantine_seen(struct quarantine *s, uint64_t run_id, uint64_t uptime_s,
    uint32_t max_ttl_ms, uint32_t drift_ppm, uint64_t now)
{
    uint64_t longest =
        ms_to_ns(max_ttl_ms) + lease_drift_ns(max_ttl_ms, drift_ppm);
    uint64_t needed_s = (longest + NS_PER_S - 1) / NS_PER_S;
    uint64_t from = now;
    if (uptime_s < needed_s + 1)
        from = deadline_after(now, (needed_s + 1 - uptime_s) * NS_PER_S);
    /* Another process than before, however old it says it is. */
    if (s->run_id != 0 && s->run_id != run_id)
        from = later(from, deadline_after(now, longest));
    if (s->run_id == run_id)
        from = later(from, s->votes_from);
    s->run_id = run_id;
    s->votes_from = from;
}

bool quarantine_over(const struct quarantine *s, uint64_t now)
{
    return s->run_id != 0 && now >= s->votes_from;
}
