/* SPDX-License-Identifier: MIT */
/*
 * Which checks can be turned off, by the name that --without takes: those of
 * the core (base/guard.h), and those that are still models here.
 */
#ifndef NXLOCK_SIM_GUARDS_H
#define NXLOCK_SIM_GUARDS_H

#include <stdbool.h>

enum sim_guard {
    SIM_GUARD_COMPARE,       /* only the owner's token deletes */
    SIM_GUARD_FENCE_FLOOR,   /* fences are not behind the server's clock */
    SIM_GUARD_NEVER_SHORTEN, /* waiting in line never shortens a lease */
    SIM_GUARD_GRANT_ORDER,   /* a token leaves the line, is granted, is told */
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
