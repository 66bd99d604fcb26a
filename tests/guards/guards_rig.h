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
#include "live/proxy_rig.h"

/* Plays on a clean server and returns whether harm was done. */
typedef bool scenario(void);

/* The harm needs precise timing, which a busy machine may miss: try again. */
enum { GUARDS_TRIES = 3 };

static inline int guards_on(void **state)
{
    memset(guard_off, 0, sizeof(guard_off));
    return live_clean(state);
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
    print_message("without %s: %s (%lld ms)\n", name, harm,
        (long long)(test_now_ms() - began_ms));
    memset(guard_off, 0, sizeof(guard_off));
}

/* The scenario does that harm, in words, without GUARD_NAME alone. */
#define assert_needed(name, harm, harms)                                       \
    guard_needed(GUARD_##name, #name, harm, harms)

#define guard_test(function) cmocka_unit_test_setup(function, guards_on)

/* A call that changes nothing and finds a connection good, or makes one. */
static inline int call(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

#endif
