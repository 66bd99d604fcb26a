/* SPDX-License-Identifier: MIT */
/*
 * The guards against a primary that was stopped while its replica was promoted,
 * and that nobody has told so when it is woken: a client still has a connection
 * to it, and another one holds the lock at the new primary.
 */
#include "guards/guards_rig.h"
#include "live/failover_rig.h"

enum { ASKS_MS = 200 }; /* until a thread has sent what it asks first */

struct story {
    nxl_client *client, *other;
    nxl_lock *lock, *taken;
};

/* Leases last for less than the connection was silent for. */
static struct story begin(void)
{
    struct story s = {.client = living(GUARDED)};
    s.lock = new_lock(s.client, "k", TTL_MS);
    redis_freeze(primary);
    promote();
    s.other = client_of(GUARDED);
    s.taken = new_lock(s.other, "k", TTL_MS);
    assert_result(nxl_lock_acquire(s.taken, 8000), NXL_OK, s.taken);
    return s;
}

static bool both_hold(struct story *s)
{
    bool both = nxl_lock_held(s->lock) && nxl_lock_held(s->taken);
    end(s->lock, s->client);
    end(s->taken, s->other);
    return both;
}

/* The connection is used when the server has been running again for a while. */
static bool the_woken_one_grants(void)
{
    struct story s = begin();
    redis_thaw(primary);
    assert_eventually(
        server_number(primary, "replication", "connected_slaves") == 0);
    int rc = nxl_lock_acquire(s.lock, 0);
    assert_true(rc == NXL_OK || rc == NXL_BUSY);
    return both_hold(&s);
}

/* What the client asks first waits in the socket when the server is woken. */
static bool the_waking_one_grants(void)
{
    struct story s = begin();
    static struct waiter waiter;
    waiter_start(&waiter, s.lock, 0);
    test_pause_ms(ASKS_MS);
    redis_thaw(primary);
    int rc = waiter_join(&waiter);
    assert_true(rc == NXL_OK || rc == NXL_BUSY);
    return both_hold(&s);
}

static void test_replicas(void **state)
{
    assert_needed(REPLICAS,
        "a primary that was stopped while its replica was promoted goes on "
        "when it is woken; two hold",
        the_woken_one_grants);
}

static void test_heard(void **state)
{
    assert_needed(HEARD,
        "it says that it still has its replica, in the moment when it is "
        "woken; two hold",
        the_waking_one_grants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_heard),
    };
    guards_clean = failover_set_up;
    return cmocka_run_group_tests_name(
        "guards_woken", tests, failover_start, failover_stop);
}
