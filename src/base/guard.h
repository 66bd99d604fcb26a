/* SPDX-License-Identifier: MIT */
/*
 * The checks that keep two holders apart, by name. In the library they are
 * always on and cost nothing; in the tests' own build (NXLOCK_GUARDS) each
 * can be turned off, to show the harm that it prevents.
 */
#ifndef NXLOCK_BASE_GUARD_H
#define NXLOCK_BASE_GUARD_H

#include <stdbool.h>

enum guard {
    GUARD_DRIFT,       /* the deadline is before the server's by the drift */
    GUARD_SEND_TIME,   /* ... and counted from before the request was sent */
    GUARD_HAND_OVER,   /* a fresh reading before a grant is handed over */
    GUARD_LAPSED,      /* a lease that lapsed here is not prolonged */
    GUARD_LOSS,        /* what cannot be prolonged is lost by its deadline */
    GUARD_RELEASED,    /* what is released is not renewed any more */
    GUARD_FRESH_TOKEN, /* a token that may have been applied is not reused */
    GUARD_HANDSHAKE,   /* nothing before AUTH and SELECT have succeeded */
    GUARD_LATE_UNDO,   /* an abandoned acquire is followed by its undoing */
    GUARD_DEBTS,       /* ... also when its connection is gone */
    GUARD_KILL,        /* ... which is killed before the undoing counts */
    GUARD_CLOBBER,     /* what a bare GETSET wrote is not deleted again */
    GUARDS
};

#ifdef NXLOCK_GUARDS
extern bool guard_off[GUARDS];
#define guarded(guard) (!guard_off[guard])
#else
#define guarded(guard) true
#endif

#endif
