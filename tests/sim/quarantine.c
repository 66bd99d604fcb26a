/* SPDX-License-Identifier: MIT */
/* Nothing is decided here: the numbers are put into words of INFO. */
#include "sim/quarantine.h"

#include <stdio.h>

void quarantine_seen(struct quarantine *q, uint64_t run_id, uint64_t uptime_s,
    uint32_t max_ttl_ms, uint32_t drift_ppm, uint64_t now)
{
    char id[STANDING_ID];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)run_id);
    struct told told = {
        .run_id = id, .role = "master", .uptime_s = (int64_t)uptime_s};
    struct standing_terms terms = {
        .max_ttl_ms = max_ttl_ms, .drift_ppm = drift_ppm, .guard = true};
    standing_judge(&q->standing, &told, &terms, false, now);
}

bool quarantine_over(const struct quarantine *q, uint64_t now)
{
    return q->standing.run_id[0] && standing_votes(&q->standing, now);
}
