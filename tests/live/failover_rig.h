/* SPDX-License-Identifier: MIT */
/*
 * A primary and its replica behind one address, a symbolic link to the socket
 * of one of them.
 *
 * Leases of at most 900 ms: the guard lasts for 2 s, and 1 s after a hand-over.
 */
#ifndef NXLOCK_TESTS_FAILOVER_RIG_H
#define NXLOCK_TESTS_FAILOVER_RIG_H

#include <unistd.h>

#include "live/live_rig.h"

#define UNGUARDED "timeout_ms=1000&max_ttl_ms=900"
#define GUARDED UNGUARDED "&guard_failover=on"
enum { TTL_MS = 900, GUARD_MS = 2000, COUNT = 2 };

static struct redis servers[COUNT];
static struct redis *primary = &servers[0], *replica = &servers[1];
static char front[LOCAL_PATH + 8];

static inline void lead_front_to(const struct redis *r)
{
    char next[sizeof(front) + 8];
    snprintf(next, sizeof(next), "%s.new", front);
    (void)unlink(next);
    assert_int_equal(symlink(r->path, next), 0);
    assert_int_equal(rename(next, front), 0);
}

static inline const char *front_url(const char *parameters)
{
    static char url[sizeof(front) + 128];
    snprintf(url, sizeof(url), "unix://%s?%s", front, parameters);
    return url;
}

static inline nxl_client *client_of(const char *parameters)
{
    return client_at(front_url(parameters));
}

/* ------------------------------------------------------------- two servers */

static inline void follow(void)
{
    redis_promote(primary);
    redis_copy(replica, primary);
}

static inline int failover_start(void **state)
{
    for (int i = 0; i < COUNT; i++)
        if (redis_start(&servers[i], "--repl-diskless-sync-delay", "0",
                "--save", "", NULL) != 0)
            return -1;
    snprintf(front, sizeof(front), "%s/front", servers[0].dir);
    /* Older than any lease. */
    for (int i = 0; i < COUNT; i++)
        while (server_number(&servers[i], "server", "uptime_in_seconds") < 3)
            test_pause_ms(20);
    return 0;
}

static inline int failover_stop(void **state)
{
    (void)unlink(front);
    for (int i = 0; i < COUNT; i++)
        redis_stop(&servers[i]);
    return 0;
}

/* servers[0] is the primary again, and everything is as at the beginning, but
 * that it may look like one that was promoted: living() waits for that. */
static inline int failover_set_up(void **state)
{
    for (int i = 0; i < COUNT; i++)
        redis_thaw(&servers[i]);
    primary = &servers[0];
    replica = &servers[1];
    follow();
    redis_run(primary, "FLUSHALL", NULL);
    lead_front_to(primary);
    return 0;
}

static inline void promote(void)
{
    redis_promote(replica);
    lead_front_to(replica);
}

/* Granted now: not before the last lease was over, and not after the guard had
 * been waited for twice. */
static inline void assert_waited_once(int64_t promoted)
{
    int64_t took = test_now_ms() - promoted, most = GUARD_MS + 1500 + LATE_MS;
    if (took > most)
        print_error("it took %lld ms: too late\n", (long long)took);
    assert_between(took, TTL_MS, most);
}

/* A client that has seen the primary vote. */
static inline nxl_client *living(const char *parameters)
{
    nxl_client *client = client_of(parameters);
    nxl_lock *lock = new_lock(client, "before", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
    return client;
}

#endif
