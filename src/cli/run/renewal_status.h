/* SPDX-License-Identifier: MIT */
/*
 * Follows the renewals of the session's lock, which the library makes while
 * session_turn() runs: reports failures, and remembers the deadline.
 */
#ifndef NXLOCK_CLI_RUN_RENEWAL_STATUS_H
#define NXLOCK_CLI_RUN_RENEWAL_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/run/session.h"

struct renewal_status {
    struct session *session;
    uint64_t deadline; /* the last confirmed end */
    unsigned tries;    /* renewals seen so far */
    bool failing;      /* the last one failed, which was reported */
    bool lost;
    char why[512]; /* why it was lost */
};

/* Begins to follow the acquired lock. */
void renewal_status_start(
    struct renewal_status *status, struct session *session);

/* Takes the events of the last session_turn(). */
void renewal_status_turn(struct renewal_status *status);

/* Releases the lock: a result of nxl_lock_release(). */
int renewal_status_end(struct renewal_status *status);

/* Reports that the lock is released, or how long --at-least keeps it.
 * rc is the result of renewal_status_end(); cleared: --at-least does not apply.
 */
void renewal_status_report_end(
    const struct renewal_status *status, int rc, bool cleared);

/* After renewal_status_end(): removes the key that --at-least has kept. */
void renewal_status_clear(struct renewal_status *status);

/* Releases a lock under which nothing was started. --at-least does not apply
 * then; otherwise the name would stay taken for that long. */
void renewal_status_give_back(struct session *session);

#endif
