/* SPDX-License-Identifier: MIT */
/*
 * The restart guard: may this server vote? One that lost its memory must not
 * until everything that it may have forgotten has run out, that is max_ttl
 * and its drift after it began anew.
 */
#ifndef NXLOCK_SIM_QUARANTINE_H
#define NXLOCK_SIM_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

struct quarantine {
    uint64_t run_id;     /* last seen; 0: none yet */
    uint64_t votes_from; /* not before */
};

/* Both readings come with a handshake, now. */
void quarantine_seen(struct quarantine *s, uint64_t run_id, uint64_t uptime_s,
    uint32_t max_ttl_ms, uint32_t drift_ppm, uint64_t now);

bool quarantine_over(const struct quarantine *s, uint64_t now);

#endif
