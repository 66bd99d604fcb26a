/* SPDX-License-Identifier: MIT */
/*
 * The lease of the session's lock, renewed from the loop of the session.
 */
#ifndef NXLOCK_CLI_LEASE_H
#define NXLOCK_CLI_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

struct lease {
    struct session *session;
    uint64_t deadline; /* the last confirmed end; NEVER: there is no lease */
    uint64_t renew_at; /* when the next extend is due */
    bool extending;    /* its event has not come yet */
    bool failing;      /* the last extend failed, and that was said */
    bool lost;         /* the server says so */
};

/* Takes charge of the lock, which has been acquired; of none if the session
 * runs without (session->unlocked). */
void lease_start(struct lease *lease, struct session *session);

/* Does what is due: takes answers, asks for more time unless ended. */
void lease_turn(struct lease *lease, bool ended);

/* When it is to be called next, without an event. */
uint64_t lease_wake(const struct lease *lease);

/* Releases the lock: a result of nxl_lock_release(). */
int lease_end(struct lease *lease);

/* After that: removes what --at-least has left of it. */
void lease_clear(struct lease *lease);

#endif
