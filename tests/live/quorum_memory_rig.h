/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out while three servers are used: what each call may say
 * then, and what has to be so afterwards.
 */
#ifndef NXLOCK_TESTS_LIVE_QUORUM_MEMORY_RIG_H
#define NXLOCK_TESTS_LIVE_QUORUM_MEMORY_RIG_H

#include "live/memory_rig.h"
#include "live/quorum_rig.h"
#include "live/renew_rig.h"

enum { SERVERS = 3, MAJORITY = 2, LEASE_MS = 30000 };

#define TERMS NO_GUARD "&timeout_ms=1000"

#define memory_test(f) memory_scene(f, quorum_clean, quorum_mend)
#define memory_test_once(f)                                                    \
    memory_once(f, #f " (once)", quorum_clean, quorum_mend)

static inline nxl_lock *plain_lock(nxl_client *client)
{
    return new_lock(client, "k", LEASE_MS);
}

static inline nxl_lock *kept_for(nxl_client *client, int64_t ttl_ms)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    return kept_lock(client, "k", &options);
}

/* What is owed is paid at the next call, long before the lease's end. */
static inline void assert_all_free(nxl_client *client)
{
    assert_eventually((connect_most(client), keys_at(SERVERS, "k") == 0));
}

/* Afterwards the same handle works, and nothing is in its way. */
static inline void assert_works(nxl_lock *lock, nxl_client *client)
{
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_true(standing(SERVERS, "k", lock) >= MAJORITY);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_all_free(client);
}

/* Without an answer, or without having asked: for want of memory. */
static inline void assert_failed(int rc, const nxl_lock *lock)
{
    if (rc == NXL_UNKNOWN)
        assert_contains(nxl_lock_errmsg(lock), "emory");
    else
        assert_out_of_memory(rc, nxl_lock_errmsg(lock));
}

/* What an acquire says is so. */
static inline void assert_granted_or_not(int rc, const nxl_lock *lock)
{
    assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
    if (rc == NXL_OK)
        assert_true(standing(SERVERS, "k", lock) >= MAJORITY);
    else
        assert_failed(rc, lock);
}

#endif
