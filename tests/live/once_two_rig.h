/* SPDX-License-Identifier: MIT */
/*
 * Two clients of one server, for work that must be done once: the scene's own,
 * by its API, and another one, which blocks.
 */
#ifndef NXLOCK_TESTS_ONCE_TWO_RIG_H
#define NXLOCK_TESTS_ONCE_TWO_RIG_H

#include "live/once_rig.h"

#include "live/renew_rig.h"

#define SHORT_MS 200
#define LAST_MS 60000 /* a lease of somebody else's */

static nxl_client *theirs;

static inline void open_clients(void)
{
    own = client_on(NO_GUARD);
    theirs = client_on(NO_GUARD);
}

static inline void close_clients(void)
{
    nxl_client_free(own);
    nxl_client_free(theirs);
}

/* A loop does what it has to; a blocking client does it by itself. */
static inline void settle(void)
{
    if (by_loop)
        turn(own, 5);
    else
        test_pause_ms(1);
}

#define settles(condition) assert_eventually((settle(), (condition)))

static inline nxl_lock *begun(int64_t ttl_ms, int renew)
{
    nxl_lock *lock = lock_with(own, NAME, .ttl_ms = ttl_ms, .renew = renew);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    return lock;
}

/* What a begin finds now, in this mode. */
static inline void assert_found(int mode, int result)
{
    nxl_lock *lock = new_lock(theirs, NAME, LAST_MS);
    assert_result(
        once_begin(theirs, lock, &WORK(.mode = mode), 0), result, lock);
    nxl_lock_free(lock);
}

#endif
