/* SPDX-License-Identifier: MIT */
/*
 * min_hold_ms: once granted, a name stays taken for that long, whatever its
 * holder does, and whatever the library cleans up meanwhile; and then it is
 * free. With it, the numbers that are out of range.
 */
#include "renew_rig.h"

#include "quorum_rig.h"

enum { LEAST_MS = 1500, HALF_PPM = 500000 };

static nxl_lock *least_lock(nxl_client *client, int renew, int64_t ttl_ms)
{
    return lock_with(
        client, "k", .ttl_ms = ttl_ms, .min_hold_ms = LEAST_MS, .renew = renew);
}

/* Nobody gets it before the time is over, and then somebody does. */
static void assert_kept(nxl_lock *lock, int64_t from_ms)
{
    while (test_now_ms() < from_ms + LEAST_MS - 20) {
        int rc = nxl_lock_acquire(lock, 0);
        if (rc != NXL_BUSY && test_now_ms() < from_ms + LEAST_MS)
            live_assert_result(
                rc, NXL_BUSY, nxl_lock_errmsg(lock), __FILE__, __LINE__);
        test_pause_ms(20);
    }
    if (!nxl_lock_held(lock))
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
}

/* By the drift allowance the lease is over here long before it is there. */
static void a_lease_that_is_over_here_first(void **state)
{
    nxl_client *theirs = new_client("");
    char parameters[32];
    snprintf(parameters, sizeof(parameters), "drift_ppm=%d", HALF_PPM);
    for (int way = 0; way < 4; way++) {
        nxl_client *client = new_client(parameters);
        nxl_lock *lock = least_lock(client, 0, 500);
        nxl_lock *other = new_lock(theirs, "k", 1000);
        int64_t from_ms = test_now_ms();
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_eventually(!nxl_lock_held(lock));
        assert_true(redis_exists(&server, "k"));
        if (way == 0) /* by the call that comes next */
            assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        if (way == 1 || way == 2)
            assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
        if (way == 2)
            assert_result(nxl_lock_release(lock), NXL_LOST, lock);
        if (way == 3)
            nxl_lock_free(lock);
        assert_kept(other, from_ms);
        nxl_lock_free(other);
        if (way != 3)
            nxl_lock_free(lock);
        nxl_client_free(client);
    }
    nxl_client_free(theirs);
}

/* A loss is told before the end; to release then is no way out. */
static void released_after_a_loss(void **state)
{
    nxl_client *client = new_client("drift_ppm=500000&timeout_ms=100");
    nxl_client *theirs = new_client("");
    nxl_lock *lock = least_lock(client, 1, 500);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    int64_t from_ms = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    assert_ptr_equal(await_loss(client, 5000), lock);
    redis_thaw(&server);
    if (redis_pttl(&server, "k") > 0) /* in time, on a slow machine */
        assert_true(nxl_lock_release(lock) != NXL_E_INVALID);
    assert_kept(other, from_ms);
    end(other, theirs);
    end(lock, client);
}

/* The release is not answered, and whatever is done about that leaves it. */
static void released_at_a_server_that_is_away(void **state)
{
    nxl_client *client = new_client("timeout_ms=100"), *theirs = new_client("");
    nxl_lock *lock = least_lock(client, 1, 500);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    int64_t from_ms = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_release(lock), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    nxl_lock *plain = new_lock(client, "plain", 1000);
    assert_result(nxl_lock_acquire(plain, 5000), NXL_OK, plain);
    assert_kept(other, from_ms);
    nxl_lock_free(plain);
    end(other, theirs);
    end(lock, client);
}

/* An attempt of its own that nobody waits for any more is undone: that is
 * another token, and does not touch what is to stand. */
static void clean_up_leaves_it(void **state)
{
    nxl_client *client = new_client("timeout_ms=100"), *theirs = new_client("");
    nxl_lock *lock = least_lock(client, 1, 500);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    int64_t from_ms = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    nxl_lock_free(lock);
    nxl_client_free(client);
    assert_kept(other, from_ms);
    end(other, theirs);
}

/* What renewals gave beyond the minimum is given back by a release. */
static void no_longer_than_the_least(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = least_lock(client, 1, 6000);
    int64_t from_ms = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    comes_true(stats_of(client).renewals > 0, 8000);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    /* Its minimum may be over by now, and the key with it. */
    assert_between(redis_pttl(&server, "k"), -2, LEAST_MS);
    assert_true(
        redis_exists(&server, "k") || test_now_ms() >= from_ms + LEAST_MS);
    assert_result(nxl_lock_acquire(lock, LEAST_MS + 1000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_between(redis_pttl(&server, "k"), LEAST_MS - 1000, LEAST_MS);
    end(lock, client);
}

/* Its key holds a time, which a release leaves to the end of the lease. */
static void with_times(void **state)
{
    nxl_client *client = new_client("scheme=timestamp");
    nxl_client *theirs = new_client("scheme=timestamp");
    nxl_lock *lock = least_lock(client, 0, 500);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    int64_t from_ms = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(nxl_lock_held(lock));
    assert_kept(other, from_ms);
    end(other, theirs);
    end(lock, client);
}

/* -------------------------------------------------------------- the numbers */

static void out_of_range(void **state)
{
    static const struct {
        const char *part; /* of what is said; NULL: it is accepted */
        int renew;
        int64_t least, most;
    } rows[] = {
        {.part = "renew is 2", .renew = 2},
        {.part = "renew is -1", .renew = -1},
        {.part = "min_hold_ms is -1", .renew = 1, .least = -1},
        {.part = "min_hold_ms is 5001", .renew = 1, .least = 5001},
        {.part = "max_hold_ms is -1", .renew = 1, .most = -1},
        {.part = "max_hold_ms is 999", .renew = 1, .most = 999},
        {.part = "max_hold_ms is 2000; it must be a number of at least 2001",
            .renew = 1,
            .least = 2001,
            .most = 2000},
        {.renew = 0, .least = 5000},
        {.renew = 1, .least = 5000, .most = 5000},
        {.renew = 1, .most = 1000},
        {.renew = 1, .least = 1, .most = INT64_C(1) << 50},
    };
    nxl_client *client = new_client("max_ttl_ms=5000");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nxl_lock *lock;
        int rc = nxl_lock_new(&lock, client, "k",
            &OPTIONS(.ttl_ms = 1000, .renew = rows[i].renew,
                .min_hold_ms = rows[i].least, .max_hold_ms = rows[i].most));
        assert_int_equal(rc, rows[i].part ? NXL_E_INVALID : NXL_OK);
        assert_true((lock == NULL) == (rows[i].part != NULL));
        if (rows[i].part)
            assert_contains(nxl_client_errmsg(client), rows[i].part);
        nxl_lock_free(lock);
    }
    nxl_client_free(client);
}

/* ---------------------------------------------------------- several servers */

/* A release is decided by a majority, and the others may still carry it out. */
static void await_gone_everywhere(void)
{
    int64_t limit = test_now_ms() + 10000;
    for (int i = 0; i < 3; i++)
        while (redis_run(&servers[i], "EXISTS", "k", NULL) != 0) {
            assert_true(test_now_ms() < limit);
            test_pause_ms(2);
        }
}

static void over_several_servers(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_client *theirs = quorum_client(3, NO_GUARD);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    connect_all(client); /* so that all of them have the lock */
    for (int down = 0; down < 3; down++) {
        nxl_lock *lock = least_lock(client, 1, 600);
        int64_t from_ms = test_now_ms();
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
        for (int i = 0; i < down; i++)
            redis_freeze(&servers[i]);
        assert_result(
            nxl_lock_release(lock), down == 2 ? NXL_UNKNOWN : NXL_OK, lock);
        for (int i = 0; i < down; i++)
            redis_thaw(&servers[i]);
        assert_kept(other, from_ms);
        assert_result(nxl_lock_release(other), NXL_OK, other);
        await_gone_everywhere();
        nxl_lock_free(lock);
    }
    end(other, theirs);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(a_lease_that_is_over_here_first),
        live_test(released_after_a_loss),
        live_test(released_at_a_server_that_is_away),
        live_test(clean_up_leaves_it),
        live_test(no_longer_than_the_least),
        live_test(with_times),
        live_test(out_of_range),
    };
    const struct CMUnitTest several[] = {
        quorum_test(over_several_servers),
    };
    return live_run_long("least time") +
           cmocka_run_group_tests_name(
               "least time (servers)", several, quorum_start, quorum_stop);
}
