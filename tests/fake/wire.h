/* SPDX-License-Identifier: MIT */
/* A real server for the group, and a client that reaches it by a bad network
 * of its own. */
#ifndef NXLOCK_TESTS_FAKE_WIRE_H
#define NXLOCK_TESTS_FAKE_WIRE_H

#include "rig.h"

#include "support/proxy.h"
#include "support/redis.h"

static struct redis server;

static inline int start_server(void **state)
{
    (void)state;
    return redis_start(&server, NULL);
}

static inline int stop_server(void **state)
{
    (void)state;
    redis_stop(&server);
    return 0;
}

struct wire {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
};

/* Held now, and the server agrees. */
static inline void assert_holds(const struct wire *w)
{
    char value[256];
    assert_true(nxl_lock_held(w->lock));
    assert_true(redis_get(&server, "k", value, sizeof(value)));
    assert_string_equal(value, nxl_lock_token(w->lock));
}

/* The handle works. timeout_ms is short, and a busy machine may be slower than
 * that: what was not answered is tried again, but busy it is never. */
static inline void assert_recovers_in_time(const struct wire *w)
{
    int rc;
    do {
        int64_t end = test_now_ms() + 10000;
        do
            rc = nxl_lock_acquire(w->lock, 0);
        while ((rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN) &&
               test_now_ms() < end);
        assert_int_equal(rc, NXL_OK);
        assert_holds(w);
        rc = nxl_lock_release(w->lock);
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        assert_true(test_now_ms() < end);
    } while (rc != NXL_OK); /* else it is in the way of what is measured */
    assert_false(redis_exists(&server, "k"));
}

#endif
