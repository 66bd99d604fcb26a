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

/* The name, and what it does. */
#define GUARD_LIST(X)                                                          \
    X(DRIFT, "the deadline precedes the server's, by the drift")               \
    X(SEND_TIME, "a lease counts from before its request was sent")            \
    X(RECHECK, "the clock is read again before a grant is returned")           \
    X(LAPSED, "a lease past its deadline is not extended")                     \
    X(EXPIRED, "the key of an expired lease is left alone")                    \
    X(LOSS, "a lease that cannot be renewed is lost by its deadline")          \
    X(RELEASED, "a lock that is being released is not renewed")                \
    X(FRESH_TOKEN, "a token that may have been applied is not reused")         \
    X(HANDSHAKE, "nothing before AUTH and SELECT have succeeded")              \
    X(LATE_UNDO, "a cancelled acquire is undone")                              \
    X(LOST_ACQUIRE, "an acquire whose connection was lost is undone")          \
    X(KILL, "the lost connection is killed before its cleanup")                \
    X(FIRST_CONNECTION, "... that one, and none that was lost later")          \
    X(CLOBBER, "a value written by a bare GETSET is not deleted")              \
    X(TAKE_OVER, "an abandoned lock is replaced by compare-and-set")           \
    X(SHORTEN, "an extend never shortens a lease")                             \
    X(CONTINUITY, "an extend counts only servers that kept the token")         \
    X(WRITE_BACK, "a quorum has the fencing token before the caller")          \
    X(RESTARTS, "a server that may have forgotten locks has no vote")          \
    X(LONGER, "... until the longest lease that was seen is over")             \
    X(SECOND_HISTORY, "a second history is a promotion")                       \
    X(AGE, "a primary that was promoted nobody knows when has no vote")        \
    X(COORDINATED, "only the former primary says that nothing was lost")       \
    X(SAME_HISTORY, "a sign of life is of the same primary")                   \
    X(ALIVE, "a silent connection is asked before it is trusted")              \
    X(HEARD, "a sign of life is as old as the answer before it")               \
    X(REPLICAS, "a primary that lost a replica is looked for anew")            \
    X(CONFIRM_GRANTS, "Sentinels confirm the primary of a grant")              \
    X(CONFIRM_EXTENDS, "... of what is done to a lock that is held")           \
    X(CONFIRM_MESSAGES, "... and of a lock that is handed over in line")       \
    X(NAMED, "a primary is as old as a majority's word for it")                \
    X(MOVED, "a lease that ends soon is not extended elsewhere")               \
    X(ALL_SENTINELS, "a majority is one of all, not of those listed")          \
    X(ONE_SENTINEL, "a Sentinel with two addresses counts once")               \
    X(COPIES, "as many replicas have a write as are wanted")                   \
    X(OLD_DEADLINE, "an extension that too few have moves no deadline")        \
    X(VOID_TOKEN, "the token of a void grant is not reused")                   \
    X(UNFIT, "a server that others overwrite grants no lock")                  \
    X(ADOPT, "a restarted server does not count for an adoption")              \
    X(JOIN_ONCE, "a token joins the line of a lock once")                      \
    X(SAME_CONNECTION, "a message counts on its JOIN's connections")           \
    X(ANSWERED, "a lease handed over counts from an answered request")         \
    X(UNSEEN, "a begin is taken back if its caller never knew of it")          \
    X(SEEN, "a begin whose caller knows of it is not taken back")              \
    X(WITNESS, "\"busy\" needs a witness that counts until now")               \
    X(NAME_ORDER, "several names are taken in the order of their bytes")       \
    X(HELD, "a lock that a wait in line has brought is given back")

#define GUARD_OF_LIST(name, does) GUARD_##name,
enum guard { GUARD_LIST(GUARD_OF_LIST) GUARDS };

#ifdef NXLOCK_GUARDS
extern bool guard_off[GUARDS];
#define guarded(guard) (!guard_off[guard])
#else
#define guarded(guard) true
#endif

#endif
