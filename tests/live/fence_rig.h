/* SPDX-License-Identifier: MIT */
/*
 * A lock "k" with a fencing number over N servers, and the counter of each
 * server, which a test may set.
 */
#ifndef NXLOCK_TESTS_LIVE_FENCE_RIG_H
#define NXLOCK_TESTS_LIVE_FENCE_RIG_H

#include "live/quorum_rig.h"

#define COUNTER "{k}:f"
#define FAR UINT64_C(8000000000000000) /* beyond the clock's numbers */

static inline nxl_lock *fenced_lock(nxl_client *client, int64_t ttl_ms)
{
    return lock_with(
        client, "k", .ttl_ms = ttl_ms, .fence = 1, .retry_max_ms = 10);
}

static inline void counter_is(size_t i, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    redis_run(&servers[i], "SET", COUNTER, text, NULL);
}

#endif
