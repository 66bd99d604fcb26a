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
    GUARD_DRIFT,     /* the deadline is before the server's by the drift */
    GUARD_SEND_TIME, /* a lease counts from before its request was sent */
    GUARD_HAND_OVER, /* a fresh reading before a grant is handed over */
    GUARD_LAPSED,    /* a lease that has expired here is not extended */
    GUARD_EXPIRED,   /* the token of an expired lease is left alone */
    GUARD_LOSS,     /* a lease that cannot be renewed is lost by its deadline */
    GUARD_RELEASED, /* a lock that is being released is not renewed */
    GUARD_FRESH_TOKEN, /* a token that may have been applied is not reused */
    GUARD_HANDSHAKE,   /* nothing before AUTH and SELECT have succeeded */
    GUARD_LATE_UNDO,   /* an abandoned acquire is followed by its undoing */
    GUARD_DEBTS,       /* so is one whose connection was lost */
    GUARD_KILL,        /* a lost connection is killed before that counts */
    GUARD_CLOBBER,     /* what a bare GETSET wrote is not deleted again */
    GUARD_TAKE_OVER,   /* what the dead left is replaced by compare-and-set */
    GUARD_SHORTEN,     /* an extend leaves a longer lease as it is */
    GUARD_CONTINUITY,  /* an extend counts those that kept the token */
    GUARD_WRITE_BACK,  /* a quorum has the fence before it is handed out */
    GUARD_RESTARTS,    /* a server that may have forgotten does not vote */
    GUARD_ADOPT,       /* a restarted server vouches for no adoption */
    GUARDS
};

#ifdef NXLOCK_GUARDS
extern bool guard_off[GUARDS];
#define guarded(guard) (!guard_off[guard])
#else
#define guarded(guard) true
#endif

#endif
