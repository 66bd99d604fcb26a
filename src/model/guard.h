/* SPDX-License-Identifier: MIT */
/*
 * The checks that keep two holders apart, by name. In the library they are
 * always on and cost nothing: guarded(GUARD_...) is true there, whatever a
 * program sets. Only in the tests' own build (NXLOCK_GUARDS) each can be turned
 * off, to show the harm that it prevents.
 *
 * The options guard_restarts and guard_failover are something else: what a
 * program asks for, which the core sees as members of struct eligibility.
 */
#ifndef NXLOCK_MODEL_GUARD_H
#define NXLOCK_MODEL_GUARD_H

#include <stdbool.h>

enum guard {
    GUARD_DRIFT,     /* the deadline precedes the server's, by the drift */
    GUARD_SEND_TIME, /* a lease counts from before its request was sent */
    GUARD_RECHECK,   /* the clock is read again before a grant is returned */
    GUARD_LAPSED,    /* a lease past its deadline is not extended */
    GUARD_EXPIRED,   /* the key of an expired lease is left alone */
    GUARD_LOSS,     /* a lease that cannot be renewed is lost by its deadline */
    GUARD_RELEASED, /* a lock that is being released is not renewed */
    GUARD_FRESH_TOKEN,  /* a token that may have been applied is not reused */
    GUARD_HANDSHAKE,    /* nothing before AUTH and SELECT have succeeded */
    GUARD_LATE_UNDO,    /* a cancelled acquire is undone */
    GUARD_LOST_ACQUIRE, /* an acquire whose connection was lost is undone */
    GUARD_KILL,         /* the lost connection is killed before its cleanup */
    GUARD_FIRST_CONNECTION, /* ... that one, and none that was lost later */
    GUARD_CLOBBER,    /* a value written by a bare GETSET is not deleted */
    GUARD_TAKE_OVER,  /* an abandoned lock is replaced by compare-and-set */
    GUARD_SHORTEN,    /* an extend never shortens a lease */
    GUARD_CONTINUITY, /* an extend counts only servers that kept the token */
    GUARD_WRITE_BACK, /* a quorum has the fencing token before the caller */
    GUARD_RESTARTS,   /* a server that may have forgotten locks has no vote */
    GUARD_LONGER,     /* ... until the longest lease that was seen is over */
    GUARD_SECOND_HISTORY, /* a second history is a promotion */
    GUARD_AGE, /* a primary that was promoted nobody knows when has no vote */
    GUARD_COORDINATED,  /* only the former primary says that nothing was lost */
    GUARD_SAME_HISTORY, /* a sign of life is of the same primary */
    GUARD_ALIVE,        /* a silent connection is asked before it is trusted */
    GUARD_HEARD,        /* a sign of life is as old as the answer before it */
    GUARD_REPLICAS,     /* a primary that lost a replica is looked for anew */
    GUARD_CONFIRM_GRANTS,   /* Sentinels confirm the primary of a grant */
    GUARD_CONFIRM_EXTENDS,  /* ... of what is done to a lock that is held */
    GUARD_CONFIRM_MESSAGES, /* ... and of a lock that is handed over in line */
    GUARD_NAMED,         /* a primary is as old as a majority's word for it */
    GUARD_MOVED,         /* a lease that ends soon is not extended elsewhere */
    GUARD_ALL_SENTINELS, /* a majority is one of all, not of those listed */
    GUARD_ONE_SENTINEL,  /* a Sentinel with two addresses counts once */
    GUARD_COPIES,        /* as many replicas have a write as are wanted */
    GUARD_OLD_DEADLINE,  /* an extension that too few have moves no deadline */
    GUARD_VOID_TOKEN,    /* the token of a void grant is not reused */
    GUARD_UNFIT,         /* a server that others overwrite grants no lock */
    GUARD_ADOPT,         /* a restarted server does not count for an adoption */
    GUARD_JOIN_ONCE,     /* a token joins the line of a lock once */
    GUARD_SAME_CONNECTION, /* a message counts on its JOIN's connections */
    GUARD_ANSWERED,   /* a lease handed over counts from an answered request */
    GUARD_UNSEEN,     /* a begin is taken back if its caller never knew of it */
    GUARD_SEEN,       /* a begin whose caller knows of it is not taken back */
    GUARD_WITNESS,    /* "busy" needs a witness that counts until now */
    GUARD_NAME_ORDER, /* several names are taken in the order of their bytes */
    GUARD_HELD,       /* a lock that a wait in line has brought is given back */
    GUARDS
};

#ifdef NXLOCK_GUARDS
extern bool guard_off[GUARDS];
#define guarded(guard) (!guard_off[guard])
#else
#define guarded(guard) true
#endif

#endif
