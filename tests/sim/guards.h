/* SPDX-License-Identifier: MIT */
/*
 * Which checks can be turned off, by the name that --without takes: those of
 * the core (model/guard.h), and those that are still models here.
 */
#ifndef NXLOCK_SIM_GUARDS_H
#define NXLOCK_SIM_GUARDS_H

#include <stdbool.h>

enum sim_guard {
    SIM_GUARD_COMPARE,       /* only the owner's token deletes */
    SIM_GUARD_FENCE_FLOOR,   /* fences are not behind the server's clock */
    SIM_GUARD_NEVER_SHORTEN, /* waiting in line never shortens a lease */
    SIM_GUARD_GRANT_ORDER,   /* a token leaves the line, is granted, is told */
    SIM_GUARD_WINDOW,        /* a waiter that is silent counts as dead */
    SIM_GUARD_FAR_WINDOW,    /* far behind in line, silence may last longer */
    SIM_GUARD_CLOCK_BACK,    /* a clock that is set back empties no line */
    SIM_GUARD_PLACE,         /* a waiter learns its place in line */
    SIM_GUARD_GAP,           /* hand-overs leave the lock free now and then */
    SIM_GUARD_GAP_KEPT,      /* in a gap nobody in line is granted the lock */
    SIM_GUARD_GAP_ENDS,      /* a gap ends though the clock is set back */
    SIM_GUARD_GAP_COMES,     /* the next gap comes though the clock goes back */
    SIM_GUARD_FINGERPRINT,   /* a result is for one fingerprint */
    SIM_GUARD_BEGIN_FREE,    /* work begins only if the lock is free */
    SIM_GUARD_BEGIN_ONCE,    /* a token begins work once */
    SIM_GUARD_HALT,        /* work in doubt begins only if that was asked for */
    SIM_GUARD_DOUBTS,      /* attempts in doubt are counted */
    SIM_GUARD_NO_END,      /* work in progress or in doubt never expires */
    SIM_GUARD_TELL_OWN,    /* a verdict is about its own attempt */
    SIM_GUARD_DONE_STAYS,  /* what was done first stays done */
    SIM_GUARD_DONE_LATE,   /* a late done counts after a failure */
    SIM_GUARD_UNSURE_LATE, /* a late unsure counts after a failure */
    SIM_GUARD_LATE,        /* a late done that does not count leaves a doubt */
    SIM_GUARD_FAILED_DOUBTS, /* a failure does not end earlier doubts */
    SIM_GUARD_FORGET,        /* only the record that was seen is forgotten */
    SIM_GUARD_UNBEGIN_OWN,   /* only the token's own begin is taken back */
    SIM_GUARD_MARKER,        /* the marker key is about one history of data */
    SIM_GUARD_OWN_WAIT,      /* WAIT counts behind the command that wrote */
    SIM_GUARD_UNBEGIN_PROOF, /* the record proves that a begin has come */
    SIM_GUARD_FIRST_ANSWER,  /* a new client waits for a majority, too */
    SIM_GUARD_SMALLEST,      /* the smallest limit of all holders counts */
    SIM_GUARD_HEAD,          /* the head of the holders knows a second kind */
    SIM_GUARD_LEASE_OVER,    /* a lease that is over takes no permits */
    SIM_GUARD_OVER_IS_GONE,  /* ... nor does it come again */
    SIM_GUARD_END_PUT,       /* a short lease beside a long one ends no key */
    SIM_GUARD_END_LEFT,      /* a key ends with the last lease that is left */
    SIM_GUARD_COUNTS_ON,     /* a batch counts what it has granted itself */
    SIM_GUARD_HELD_FIRST,    /* a token that holds permits takes no more */
    SIM_GUARD_LEAVES_LINE,   /* who is granted permits leaves the line */
    SIM_GUARD_TAKE_BEHIND,   /* who takes permits does not pass the line */
    SIM_GUARD_AFTER_GAP,     /* ... nor after a gap, when it has no mark */
    SIM_GUARD_PAUSE,         /* now and then nobody joins the holders */
    SIM_GUARD_AS_JOINED,     /* a place in line is removed as it was taken */
    SIM_GUARD_HOLD_BACK,     /* who waits without a line holds readers back */
    SIM_GUARD_MARK_STAYS,    /* ... also when the last of them has left */
    SIM_GUARDS
};

extern bool sim_guard_off[SIM_GUARDS];
#define guarded_here(guard) (!sim_guard_off[guard])

/* False: no such guard. */
bool guard_turn_off(const char *name);
void guards_turn_on(void);
const char *guard_name(unsigned index);  /* NULL: no more */
const char *guard_words(unsigned index); /* as where it is declared */

#endif
