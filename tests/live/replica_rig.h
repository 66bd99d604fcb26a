/* SPDX-License-Identifier: MIT */
/*
 * What the tests of wait_replicas share: the server has one replica, which
 * follows it before each test; clients that wait for it.
 */
#ifndef NXLOCK_TESTS_REPLICA_RIG_H
#define NXLOCK_TESTS_REPLICA_RIG_H

#include "live/live_rig.h"

static struct redis replica;

static inline void replica_follow(void)
{
    redis_copy(&replica, &server);
    assert_eventually(
        server_number(&server, "replication", "connected_slaves") == 1);
}

static inline int replica_start(void **state)
{
    if (redis_start(&server, "--repl-diskless-sync-delay", "0",
            "--repl-timeout", "60", NULL) != 0)
        return -1;
    return redis_start(&replica, NULL);
}

static inline int replica_stop(void **state)
{
    redis_thaw(&replica);
    redis_stop(&replica);
    return live_stop(state);
}

/* Whatever the last test has left, the server is a primary, the replica has all
 * of it, and the server has no scripts. */
static inline int replica_set_up(void **state)
{
    if (replica.pid == 0)
        redis_restart(&replica);
    redis_thaw(&replica);
    redis_promote(&server);
    replica_follow();
    redis_run(&server, "SET", "warm", "", NULL);
    assert_eventually(redis_run(&server, "WAIT", "1", "100", NULL) == 1);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    return live_clean(state);
}

#define replica_test(function) cmocka_unit_test_setup(function, replica_set_up)

static inline nxl_client *waiting_client(const char *more)
{
    char url[256];
    snprintf(url, sizeof(url), "%s?wait_replicas=1%s", server.unix_url, more);
    return client_at(url);
}

/* A client waits for replicas. */
static inline bool replica_is_awaited(void)
{
    return server_number(&server, "clients", "blocked_clients") > 0;
}

#endif
