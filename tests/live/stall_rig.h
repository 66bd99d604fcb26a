/* SPDX-License-Identifier: MIT */
/* A GETSET that is held up on its way, where there is no WATCH. */
#ifndef NXLOCK_TESTS_STALL_RIG_H
#define NXLOCK_TESTS_STALL_RIG_H

#include "live/stamp_rig.h"

static inline void without_watch(void)
{
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", "-watch", "-multi",
        NULL);
}

/* A step of an acquire that is stopped before its GETSET leaves. */
struct stalled {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
    struct waiter *waiter;
};

static inline void stall(
    struct stalled *s, const char *parameters, int64_t wait_ms)
{
    static struct waiter waiter;
    s->proxy = proxy_to_server();
    s->client = via(s->proxy, parameters);
    s->lock = new_lock(s->client, "k", 1000);
    redis_run(&server, "SET", "k", "1600000000", NULL);
    assert_result(nxl_lock_acquire(s->lock, 0), NXL_OK, s->lock);
    assert_result(nxl_lock_release(s->lock), NXL_OK, s->lock);
    redis_run(&server, "SET", "k", "1600000000", NULL);
    uint64_t up = proxy_bytes(s->proxy, PROXY_UP);
    uint64_t down = proxy_bytes(s->proxy, PROXY_DOWN);
    proxy_hold(s->proxy, PROXY_DOWN, true);
    waiter_start(&waiter, s->lock, wait_ms);
    assert_true(proxy_await(s->proxy, PROXY_UP, up + 100));
    assert_true(proxy_await(s->proxy, PROXY_DOWN, down + 14));
    proxy_hold(s->proxy, PROXY_UP, true);
    up = proxy_bytes(s->proxy, PROXY_UP);
    proxy_hold(s->proxy, PROXY_DOWN, false);
    assert_true(proxy_await(s->proxy, PROXY_UP, up + 80));
    s->waiter = &waiter;
}

static inline void stall_end(struct stalled *s)
{
    end(s->lock, s->client);
    proxy_stop(s->proxy);
}

#endif
