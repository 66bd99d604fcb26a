/* SPDX-License-Identifier: MIT */
/*
 * Which checks can be turned off, by the name that --without takes: those of
 * the core (model/guard.h), and those that are still models here.
 */
#ifndef NXLOCK_SIM_GUARDS_H
#define NXLOCK_SIM_GUARDS_H

#include <stdbool.h>

#define SIM_GUARD_LIST(X)                                                      \
    X(COMPARE, "only the owner's token deletes")                               \
    X(FENCE_FLOOR, "fences are not behind the server's clock")                 \
    X(NEVER_SHORTEN, "waiting in line never shortens a lease")                 \
    X(GRANT_ORDER, "a token leaves the line, is granted, is told")             \
    X(WINDOW, "a waiter that is silent counts as dead")                        \
    X(FAR_WINDOW, "far behind in line, silence may last longer")               \
    X(CLOCK_BACK, "a clock that is set back empties no line")                  \
    X(PLACE, "a waiter learns its place in line")                              \
    X(GAP, "hand-overs leave the lock free now and then")                      \
    X(GAP_KEPT, "in a gap nobody in line is granted the lock")                 \
    X(GAP_ENDS, "a gap ends though the clock is set back")                     \
    X(GAP_COMES, "the next gap comes though the clock goes back")              \
    X(FINGERPRINT, "a result is for one fingerprint")                          \
    X(BEGIN_FREE, "work begins only if the lock is free")                      \
    X(BEGIN_ONCE, "a token begins work once")                                  \
    X(HALT, "work in doubt begins only if that was asked for")                 \
    X(DOUBTS, "attempts in doubt are counted")                                 \
    X(NO_END, "work in progress or in doubt never expires")                    \
    X(TELL_OWN, "a verdict is about its own attempt")                          \
    X(DONE_STAYS, "what was done first stays done")                            \
    X(DONE_LATE, "a late done counts after a failure")                         \
    X(UNSURE_LATE, "a late unsure counts after a failure")                     \
    X(LATE, "a late done that does not count leaves a doubt")                  \
    X(FAILED_DOUBTS, "a failure does not end earlier doubts")                  \
    X(FORGET, "only the record that was seen is forgotten")                    \
    X(UNBEGIN_OWN, "only the token's own begin is taken back")                 \
    X(MARKER, "the marker key is about one history of data")                   \
    X(OWN_WAIT, "WAIT counts behind the command that wrote")                   \
    X(UNBEGIN_PROOF, "the record proves that a begin has come")                \
    X(FIRST_ANSWER, "a new client waits for a majority, too")                  \
    X(SMALLEST, "the smallest limit of all holders counts")                    \
    X(HEAD, "the head of the holders knows a second kind")                     \
    X(LEASE_OVER, "a lease that is over takes no permits")                     \
    X(OVER_IS_GONE, "... nor does it come again")                              \
    X(END_PUT, "a short lease beside a long one ends no key")                  \
    X(END_LEFT, "a key ends with the last lease that is left")                 \
    X(COUNTS_ON, "a batch counts what it has granted itself")                  \
    X(HELD_FIRST, "a token that holds permits takes no more")                  \
    X(LEAVES_LINE, "who is granted permits leaves the line")                   \
    X(TAKE_BEHIND, "who takes permits does not pass the line")                 \
    X(AFTER_GAP, "... nor after a gap, when it has no mark")                   \
    X(PAUSE, "now and then nobody joins the holders")                          \
    X(AS_JOINED, "a place in line is removed as it was taken")                 \
    X(HOLD_BACK, "who waits without a line holds readers back")                \
    X(MARK_STAYS, "... also when the last of them has left")

#define SIM_GUARD_OF_LIST(name, does) SIM_GUARD_##name,
enum sim_guard { SIM_GUARD_LIST(SIM_GUARD_OF_LIST) SIM_GUARDS };

extern bool sim_guard_off[SIM_GUARDS];
#define guarded_here(guard) (!sim_guard_off[guard])

/* By its name in small letters, as "send-time"; false: no such guard. */
bool guard_turn_off(const char *name);
void guards_turn_on(void);
/* Prints the name of each with what it does, in lines, to stdout. */
void guards_print(void);

#endif
