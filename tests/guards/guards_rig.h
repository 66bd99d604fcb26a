/* SPDX-License-Identifier: MIT */
/*
 * A guard is worth its place when the very scenario that does no harm with
 * it does harm without it: every test here runs one twice.
 */
#ifndef NXLOCK_TESTS_GUARDS_RIG_H
#define NXLOCK_TESTS_GUARDS_RIG_H

#include "support/test.h"

#include "base/guard.h"
#include "live/orphan_rig.h"

/* Plays on a clean server and returns whether harm was done. */
typedef bool scenario(void);

static inline int guards_on(void **state)
{
    memset(guard_off, 0, sizeof(guard_off));
    return live_clean(state);
}

static inline void assert_needed(enum guard guard, scenario *harms)
{
    guards_on(NULL);
    if (harms())
        fail_msg("harm although the guard is on");
    guards_on(NULL);
    guard_off[guard] = true;
    if (!harms())
        fail_msg("no harm although the guard is off");
    memset(guard_off, 0, sizeof(guard_off));
}

#define guard_test(function) cmocka_unit_test_setup(function, guards_on)

/* Another program that wants the name gets it: two hold it, if the first
 * still does. */
static inline void other_gets_it(int64_t wait_ms)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 10000);
    assert_result(nxl_lock_acquire(lock, wait_ms), NXL_OK, lock);
    end(lock, client);
}

#endif
