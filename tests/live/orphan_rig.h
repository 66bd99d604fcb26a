/* SPDX-License-Identifier: MIT */
/*
 * How a SET is made to be applied after its caller has given up, and after
 * its connection is gone.
 */
#ifndef NXLOCK_TESTS_ORPHAN_RIG_H
#define NXLOCK_TESTS_ORPHAN_RIG_H

#include "live/proxy_rig.h"

enum { ORPHAN_TTL_MS = 30000, TIMEOUT_MS = 50 };
#define TIMEOUT "timeout_ms=50" /* TIMEOUT_MS */

/* A call that changes nothing and finds a connection good, or makes one. */
static inline int call(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

static inline bool token_stands(const char *key, nxl_lock *lock)
{
    char value[512];
    return redis_get(&server, key, value, sizeof(value)) &&
           strcmp(value, nxl_lock_token(lock)) == 0;
}

/* When the connection is lost: while the acquire waits for its answer, or
 * after its caller has given up (and the undoing has been written). */
enum lost { WHILE_WAITING, AFTER_GIVING_UP };

/* On a busy machine any call may be too late for TIMEOUT_MS. */
static inline bool is_late(int rc)
{
    return rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE;
}

/* How many bytes an acquire sends. */
static inline size_t size_of_acquire(struct proxy *proxy, nxl_lock *lock)
{
    size_t size;
    int rc, released;
    do {
        assert_eventually(call(lock) == NXL_FREE);
        uint64_t before = proxy_bytes(proxy, PROXY_UP);
        rc = nxl_lock_acquire(lock, 0);
        size = (size_t)(proxy_bytes(proxy, PROXY_UP) - before);
        released = rc == NXL_OK ? nxl_lock_release(lock) : NXL_OK;
    } while (is_late(rc) || is_late(released));
    assert_result(rc, NXL_OK, lock);
    assert_result(released, NXL_OK, lock);
    return size;
}

/* The SET stands in the frozen server's socket, its connection is gone and
 * nothing came behind it. Then the server goes on. */
static inline void orphan(struct proxy *proxy, const char *key, nxl_lock *lock,
    size_t size, enum lost when)
{
    redis_freeze(&server);
    if (when == AFTER_GIVING_UP)
        proxy_hold(proxy, PROXY_UP, true);
    else
        proxy_cut_after(proxy, PROXY_UP, size);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    if (when == AFTER_GIVING_UP) {
        proxy_cut_after(proxy, PROXY_UP, size);
        proxy_hold(proxy, PROXY_UP, false);
        assert_int_equal(proxy_connections(proxy), 0);
    }
    redis_thaw(&server);
    assert_eventually(token_stands(key, lock));
}

/* A socket's path that leads to the server now, and to a proxy then: only
 * what is dialled from now on goes another way. */
static char road[LOCAL_PATH];

static inline void lead_to(const char *path)
{
    char next[LOCAL_PATH + 8];
    snprintf(next, sizeof(next), "%s.next", road);
    assert_int_equal(symlink(path, next), 0);
    assert_int_equal(rename(next, road), 0);
}

static inline nxl_client *client_on_road(void)
{
    char url[LOCAL_PATH + 64];
    snprintf(url, sizeof(url), "unix://%s?" TIMEOUT, road);
    return client_at(url);
}

/* A new road, to a proxy of the server. */
static inline struct proxy *proxy_on_road(void)
{
    struct proxy *proxy = proxy_start(server.path, 0);
    local_path(road, server.dir, "road");
    lead_to(proxy_url(proxy) + strlen("unix://"));
    return proxy;
}

#endif
