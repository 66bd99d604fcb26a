/* SPDX-License-Identifier: MIT */
/*
 * A program outside the line: it knows nothing of nxlock and polls for a name
 * with SET NX PX, as redis-py and node-redlock do, and deletes the key by
 * comparison. Nobody hands the name over to it, and it hands it over to nobody.
 *
 * Invariant: it relies on the name as a careful program does: from the answer
 * on, for less than the TTL counted from before its request was sent. And it
 * waits for that long before it asks a server that may have forgotten its keys,
 * which is what the restart quarantine does for nxlock.
 */
#ifndef NXLOCK_SIM_STRANGER_H
#define NXLOCK_SIM_STRANGER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/alarm.h"

#define STRANGERS_MAX 4

struct model_server;
struct world;

struct stranger {
    unsigned index, name;
    /* Between two requests: so long, and up to jitter_ns more. */
    uint64_t pause_ns, jitter_ns;
    enum {
        STRANGER_RESTS,
        STRANGER_ASKS,     /* SET NX PX is on its way to the server */
        STRANGER_HEARS,    /* ... and its answer on the way back */
        STRANGER_HOLDS,    /* it has the name */
        STRANGER_RELEASES, /* the deletion is on its way */
        STRANGER_OVER
    } state;
    uint64_t token;
    uint32_t ttl_ms;
    uint64_t sent_at;
    bool granted;
    uint64_t relies_until; /* it holds the name; 0: it does not */
    /* Since when it asks again and again and is answered at once; NEVER: it
     * does not now. */
    uint64_t asks_since;
    struct alarm alarm;
};

void strangers_start(struct world *w);
void strangers_end(struct world *w);

/* Does it rely on the name now? */
bool stranger_holds(const struct world *w, const struct stranger *g);
/* Does one ask for the name, at least once in period_ns, and has since then? */
bool strangers_ask(
    const struct world *w, unsigned name, uint64_t since, uint64_t period_ns);

#endif
