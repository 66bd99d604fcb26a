/* SPDX-License-Identifier: MIT */
/*
 * The restart guard of the core (core/standing.h), as the model of a link
 * uses it: what a server told at a handshake, and whether it may vote.
 */
#ifndef NXLOCK_SIM_QUARANTINE_H
#define NXLOCK_SIM_QUARANTINE_H

#include "core/standing.h"

struct quarantine {
    struct standing standing;
};

/* Both readings come with a handshake, now. */
void quarantine_seen(struct quarantine *q, uint64_t run_id, uint64_t uptime_s,
    uint32_t max_ttl_ms, uint32_t drift_ppm, uint64_t now);

bool quarantine_over(const struct quarantine *q, uint64_t now);

#endif
