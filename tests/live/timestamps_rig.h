/* SPDX-License-Identifier: MIT */
/* The timestamp scheme: the values that tests read, and a GETSET that is held
 * up on its way. */
#ifndef NXLOCK_TESTS_TIMESTAMPS_RIG_H
#define NXLOCK_TESTS_TIMESTAMPS_RIG_H

#include "live/proxy_rig.h"

#define STAMPS "scheme=timestamp"

#define STAMP_VALUE 160 /* room for any in our format */

/* The whole seconds of what stands there; 0: it is not in our format. */
static inline int64_t stamp_at(const char *key)
{
    char value[STAMP_VALUE];
    char *end;
    if (!redis_get(&server, key, value, sizeof(value)))
        return 0;
    int64_t seconds = strtoll(value, &end, 10);
    return end - value == 10 && strlen(end) == 128 && strspn(end, " \t") == 128
               ? seconds
               : 0;
}

/* ------------------------------------------------- a GETSET that is held up
 */

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
