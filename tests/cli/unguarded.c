/* SPDX-License-Identifier: MIT */
/*
 * Makes the command of a library with guards break a promise, so that 'nxlock
 * drill' can be seen to notice: with NXLOCK_TEST_UNGUARDED=1, a lock that
 * cannot be renewed is not lost by its deadline.
 *
 * Linked in place of support/guards.c.
 */
#include <stdlib.h>

#include "model/guard.h"

bool guard_off[GUARDS];

__attribute__((constructor)) static void unguard(void)
{
    guard_off[GUARD_LOSS] = getenv("NXLOCK_TEST_UNGUARDED") != NULL;
}
