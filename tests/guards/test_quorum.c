/* SPDX-License-Identifier: MIT */
/* The guards that make a majority worth something: of servers that remember,
 * that kept the token, and that know the number. */
#include "guards/guards_rig.h"
#include "live/quorum_rig.h"
#include "support/fake.h"

#define COUNTER "{k}:f"
#define FAR "8000000000000000" /* beyond the clock's numbers */
#define MAX "max_ttl_ms=20000"

static int clean(void **state)
{
    quorum_mend(state);
    return quorum_clean(state);
}

/* Both hold, at this moment. */
static bool both(const nxl_lock *first, const nxl_lock *second)
{
    return nxl_lock_held(first) && nxl_lock_held(second);
}

/* ---------------------------------------------------------------- restarts */

/* The majority that granted is restarted, and has no data. */
static bool a_majority_forgets(void)
{
    nxl_client *client = quorum_client(3, MAX "&" NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 20000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_restart(&servers[0]);
    redis_restart(&servers[1]);
    redis_restart(&servers[2]);
    nxl_client *other = quorum_client(3, MAX);
    nxl_lock *second = new_lock(other, "k", 1000);
    int rc = nxl_lock_acquire(second, 0);
    assert_true(rc == NXL_OK || rc == NXL_E_REFUSED);
    bool harm = both(lock, second);
    end(second, other);
    end(lock, client);
    return harm;
}

static void test_restarts(void **state)
{
    (void)state;
    assert_needed(RESTARTS,
        "servers that lost their data grant a held lock; two hold",
        a_majority_forgets);
}

/* The lease of the first is longer than the second one's max_ttl_ms, which that
 * has seen. */
static bool a_longer_lease_is_forgotten(void)
{
    nxl_client *client = quorum_client(3, MAX "&" NO_GUARD);
    nxl_client *other = quorum_client(3, "max_ttl_ms=1000");
    nxl_lock *lock = new_lock(client, "k", 8000);
    nxl_lock *second = new_lock(other, "k", 1000);
    int rc = NXL_E_REFUSED;
    while (rc == NXL_E_REFUSED) /* the servers are young */
        rc = nxl_lock_acquire(second, 5000);
    assert_result(rc, NXL_OK, second);
    assert_result(nxl_lock_release(second), NXL_OK, second);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_acquire(second, 500), NXL_BUSY, second);
    for (size_t i = 0; i < 3; i++)
        redis_restart(&servers[i]);
    rc = nxl_lock_acquire(second, 5000);
    assert_true(rc == NXL_OK || rc == NXL_E_REFUSED);
    bool harm = both(lock, second);
    end(second, other);
    end(lock, client);
    return harm;
}

static void test_longer(void **state)
{
    (void)state;
    assert_needed(LONGER,
        "a lease that is longer than max_ttl_ms is not waited for; two hold",
        a_longer_lease_is_forgotten);
}

/* ------------------------------------------------------------------- unfit */

/* Each of two active replicas of KeyDB, which overwrite each other's keys only
 * after they have granted. KeyDB is not packaged, so they are played. */
static bool both_replicas_grant(void)
{
    static const char script[] =
        "INFO # Server\\r\\nredis_version:6.3.4\\r\\nrun_id:aa\\r\\n"
        "uptime_in_seconds:864000\\r\\nrole:active-replica\\r\\n\nSERVE\n";
    struct fake *replica[2];
    nxl_client *client[2];
    nxl_lock *lock[2];
    for (int i = 0; i < 2; i++) {
        replica[i] = fake_start(script);
        client[i] = client_at(fake_url(replica[i]));
        lock[i] = new_lock(client[i], "k", 20000);
        int rc = nxl_lock_acquire(lock[i], 0);
        assert_true(rc == NXL_OK || rc == NXL_E_REFUSED);
    }
    bool harm = both(lock[0], lock[1]);
    for (int i = 0; i < 2; i++) {
        end(lock[i], client[i]);
        fake_free(replica[i]);
    }
    return harm;
}

static void test_unfit(void **state)
{
    (void)state;
    assert_needed(UNFIT, "two active replicas grant one lock; two hold",
        both_replicas_grant);
}

/* -------------------------------------------------------------- continuity */

/* The token was lost at a majority, which has granted to another one since. */
static bool a_minority_prolongs(void)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_client *other = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 20000);
    nxl_lock *second = new_lock(other, "k", 20000);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_run(&servers[0], "DEL", "k", NULL);
    redis_run(&servers[1], "DEL", "k", NULL);
    assert_result(nxl_lock_acquire(second, 5000), NXL_OK, second);
    int rc = nxl_lock_extend(lock, 0);
    assert_true(rc == NXL_OK || rc == NXL_LOST);
    bool harm = rc == NXL_OK && both(lock, second);
    end(second, other);
    end(lock, client);
    return harm;
}

static void test_continuity(void **state)
{
    (void)state;
    assert_needed(CONTINUITY,
        "a lock that a majority has granted to another one is prolonged",
        a_minority_prolongs);
}

/* -------------------------------------------------------------- write-back */

static uint64_t fence_without(size_t frozen)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock;
    options.ttl_ms = 5000;
    options.fence = 1;
    redis_freeze(&servers[frozen]);
    assert_int_equal(nxl_lock_new(&lock, client, "k", &options), NXL_OK);
    assert_result(nxl_lock_acquire(lock, 15000), NXL_OK, lock);
    uint64_t fence = nxl_lock_fence(lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    redis_thaw(&servers[frozen]);
    return fence;
}

/* Two grants have one server in common, and it is not the one that gave the
 * first its number. */
static bool the_second_is_less(void)
{
    redis_run(&servers[2], "SET", COUNTER, FAR, NULL);
    uint64_t first = fence_without(0);
    return fence_without(2) <= first;
}

static void test_write_back(void **state)
{
    (void)state;
    assert_needed(WRITE_BACK,
        "the fencing number of a later grant is less than an earlier one",
        the_second_is_less);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_restarts),
        guard_test(test_longer),
        guard_test(test_unfit),
        guard_test(test_continuity),
        guard_test(test_write_back),
    };
    guards_clean = clean;
    return quorum_run("guards of majorities");
}
