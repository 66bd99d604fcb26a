/* SPDX-License-Identifier: MIT */
/*
 * A guard is worth its place when the very scenario that does no harm with
 * it does harm without it: every test here runs one twice, and tells what was
 * seen in a line that table.py reads.
 */
#ifndef NXLOCK_TESTS_GUARDS_RIG_H
#define NXLOCK_TESTS_GUARDS_RIG_H

#include "support/test.h"

#include "model/guard.h"
#include "live/orphan_rig.h"

/* Plays on a clean server and returns whether harm was done. */
typedef bool scenario(void);

/* The harm needs precise timing, which a busy machine may miss: try again. */
enum { GUARDS_TRIES = 3 };

/* For a program with other servers than the one of live_rig.h. */
static int (*guards_clean)(void **) = live_clean;

static inline int guards_on(void **state)
{
    memset(guard_off, 0, sizeof(guard_off));
    return guards_clean(state);
}

static inline void tell_harm(const char *guard, const char *harm, int64_t ms)
{
    print_message("without %s: %s (%lld ms)\n", guard, harm, (long long)ms);
}

static inline void guard_needed(
    enum guard guard, const char *name, const char *harm, scenario *harms)
{
    guards_on(NULL);
    if (harms()) {
        print_error("HARM: although the guard is on\n");
        fail_msg("harm although the guard is on: %s", name);
    }
    bool harmed = false;
    int64_t began_ms = 0;
    for (int i = 0; i < GUARDS_TRIES && !harmed; i++) {
        guards_on(NULL);
        guard_off[guard] = true;
        began_ms = test_now_ms();
        harmed = harms();
    }
    if (!harmed)
        fail_msg("no harm although the guard is off: %s", name);
    tell_harm(name, harm, test_now_ms() - began_ms);
    memset(guard_off, 0, sizeof(guard_off));
}

/* The scenario does that harm, in words, without GUARD_NAME alone. */
#define assert_needed(name, harm, harms)                                       \
    guard_needed(GUARD_##name, #name, harm, harms)

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
