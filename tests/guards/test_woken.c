/* SPDX-License-Identifier: MIT */
/*
 * The guard against a primary that was stopped while its replica was promoted,
 * and that has not been told so when it is woken: a client still has a
 * connection to it, and another one holds the lock at the new primary.
 */
#include "guards/guards_rig.h"
#include "live/failover_rig.h"

struct story {
    nxl_client *client, *other;
    nxl_lock *lock, *taken;
};

/* The other lock is renewed, so that it is held on a busy machine, too. */
static struct story begin(void)
{
    struct story s = {.client = living(GUARDED)};
    s.lock = new_lock(s.client, "k", TTL_MS);
    redis_freeze(primary);
    promote();
    s.other = client_of(GUARDED);
    s.taken = lock_with(s.other, "k", .ttl_ms = TTL_MS, .renew = 1);
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

static void test_replicas(void **state)
{
    assert_needed(REPLICAS,
        "a primary that was stopped while its replica was promoted goes on "
        "when it is woken; two hold",
        the_woken_one_grants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
    };
    guards_clean = failover_set_up;
    return cmocka_run_group_tests_name(
        "guards_woken", tests, failover_start, failover_stop);
}
