/* SPDX-License-Identifier: MIT */
/*
 * The lease of the session's lock, which the library keeps alive while the
 * session turns: what became of that, said and remembered.
 */
#ifndef NXLOCK_CLI_RENEWAL_STATUS_H
#define NXLOCK_CLI_RENEWAL_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

struct renewal_status {
    struct session *session;
    uint64_t deadline; /* the last confirmed end; NEVER: there is no lease */
    unsigned tries;    /* renewals that were looked at */
    bool failing;      /* the last one failed, and that was said */
    bool lost;
    char why[256]; /* of that */
};

/* Takes charge of the lock, which has been acquired; of none if the session
 * runs without (session->unlocked). */
void renewal_status_start(
    struct renewal_status *status, struct session *session);

/* Takes note of what happened in the last turn of the session. */
void renewal_status_turn(struct renewal_status *status);

/* Releases the lock: a result of nxl_lock_release(). */
int renewal_status_end(struct renewal_status *status);

/* With -v: says that the lock is free again, or what --at-least keeps of it;
 * rc is the result of renewal_status_end(). */
void renewal_status_report_end(
    const struct renewal_status *status, int rc, bool cleared);

/* After renewal_status_end(): removes what --at-least has left of it. */
void renewal_status_clear(struct renewal_status *status);

/* Of a lock under which nothing was started: so --at-least does not count,
 * else the name would stay taken for as long as its lease. */
void renewal_status_give_back(struct session *session);

#endif
