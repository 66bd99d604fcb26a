/* SPDX-License-Identifier: MIT */
/*
 * The lease of the session's lock, which the library keeps alive while the
 * session turns: what became of that, said and remembered.
 */
#ifndef NXLOCK_CLI_LEASE_H
#define NXLOCK_CLI_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

struct lease {
    struct session *session;
    uint64_t deadline; /* the last confirmed end; NEVER: there is no lease */
    unsigned tries;    /* renewals that were looked at */
    bool failing;      /* the last one failed, and that was said */
    bool lost;
    char why[256];     /* of that */
};

/* Takes charge of the lock, which has been acquired; of none if the session
 * runs without (session->unlocked). */
void lease_start(struct lease *lease, struct session *session);

/* Takes note of what happened in the last turn of the session. */
void lease_turn(struct lease *lease);

/* Releases the lock: a result of nxl_lock_release(). */
int lease_end(struct lease *lease);

/* After that: removes what --at-least has left of it. */
void lease_clear(struct lease *lease);

/* Of a lock under which nothing was started: so --at-least does not count,
 * else the name would stay taken for as long as its lease. */
void lease_give_back(struct session *session);

#endif
