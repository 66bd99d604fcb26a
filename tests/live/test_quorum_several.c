/* SPDX-License-Identifier: MIT */
/*
 * Handles of several names over three servers: each name is held by a majority,
 * one server may be away, and a round that is lost makes the whole begin again.
 */
#include "live/api_rig.h"

enum { NAMES = 3, LEASE_MS = 20000 };
static const char *const names[NAMES] = {"c", "a", "b"};

static nxl_lock *three_names(nxl_client *client, int shared, int renew)
{
    nxl_lock *lock;
    assert_int_equal(
        nxl_lock_new_many(&lock, client, names, NULL, NAMES,
            &OPTIONS(.ttl_ms = LEASE_MS, .shared = shared, .renew = renew)),
        NXL_OK);
    return lock;
}

static size_t keys_left(void)
{
    size_t count = 0;
    for (size_t i = 0; i < NAMES; i++)
        count += keys_at(on.servers, names[i]);
    return count;
}

static void assert_majorities(const nxl_lock *lock)
{
    for (size_t i = 0; i < NAMES; i++)
        assert_true(standing(on.servers, names[i], lock) >= majority());
}

static void all_of_them(void **state)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *lock = three_names(client, 0, 1);
    for (int i = 0; i < 5; i++) {
        assert_result(CALL(client, acquire, lock, 5000), NXL_OK, lock);
        assert_true(nxl_lock_held(lock));
        assert_majorities(lock);
        assert_result(CALL(client, extend, lock, 0), NXL_OK, lock);
        assert_result(CALL(client, release, lock), NXL_OK, lock);
        assert_eventually(keys_left() == 0);
    }
    nxl_lock_free(lock);
    nxl_client_free(client);
}

static void one_server_is_away(void **state)
{
    nxl_client *client = client_on(NO_GUARD "&timeout_ms=1000");
    nxl_lock *lock = three_names(client, 0, 0);
    redis_freeze(&servers[1]);
    assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
    redis_thaw(&servers[1]);
    assert_majorities(lock);
    assert_result(CALL(client, release, lock), NXL_OK, lock);
    nxl_lock_free(lock);
    nxl_client_free(client);
}

static void two_servers_are_away(void **state)
{
    nxl_client *client = client_on(NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = three_names(client, 0, 0);
    redis_freeze(&servers[1]);
    redis_freeze(&servers[2]);
    int64_t began = test_now_ms();
    int rc = CALL(client, acquire, lock, 0);
    assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    assert_between(test_now_ms() - began, 0, 300 + LATE_MS);
    assert_false(nxl_lock_held(lock));
    nxl_lock_free(lock);
    redis_thaw(&servers[1]);
    redis_thaw(&servers[2]);
    nxl_client_free(client);
}

/* A majority of one name is taken: none is held while that is so, or no longer
 * than for a round. */
static void one_is_busy(void **state)
{
    static struct waiter waiter;
    for (size_t at = 0; at < NAMES; at++) {
        nxl_client *client = quorum_client(3, NO_GUARD);
        nxl_client *other = quorum_client(3, NO_GUARD);
        nxl_lock *lock = three_names(client, 0, 0);
        nxl_lock *busy = new_lock(other, names[at], LEASE_MS);
        connect_all(other); /* a grant by two would leave the third without */
        assert_result(nxl_lock_acquire(busy, 5000), NXL_OK, busy);
        assert_eventually(standing(on.servers, names[at], busy) == 3);
        assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_eventually(keys_left() == on.servers);
        waiter_start(&waiter, lock, 20000);
        test_pause_ms(200);
        assert_result(nxl_lock_release(busy), NXL_OK, busy);
        assert_int_equal(waiter_join(&waiter), NXL_OK);
        assert_majorities(lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_eventually(keys_left() == 0);
        nxl_lock_free(busy);
        nxl_client_free(other);
        nxl_lock_free(lock);
        nxl_client_free(client);
    }
}

static void readers(void **state)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *one = three_names(client, 1, 0), *two = three_names(client, 1, 0);
    nxl_lock *writer = three_names(client, 0, 0);
    assert_result(CALL(client, acquire, one, 5000), NXL_OK, one);
    assert_result(CALL(client, acquire, two, 5000), NXL_OK, two);
    assert_result(CALL(client, acquire, writer, 0), NXL_BUSY, writer);
    assert_result(CALL(client, release, one), NXL_OK, one);
    assert_result(CALL(client, release, two), NXL_OK, two);
    assert_result(CALL(client, acquire, writer, 5000), NXL_OK, writer);
    nxl_lock_free(one);
    nxl_lock_free(two);
    nxl_lock_free(writer);
    nxl_client_free(client);
}

static void adopted(void **state)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *one = three_names(client, 0, 0), *two = three_names(client, 0, 1);
    connect_all(client);
    assert_result(CALL(client, acquire, one, 0), NXL_OK, one);
    assert_eventually(keys_left() == NAMES * on.servers);
    assert_result(CALL(client, adopt, two, nxl_lock_token(one)), NXL_OK, two);
    assert_result(CALL(client, release, two), NXL_OK, two);
    assert_result(CALL(client, release, one), NXL_LOST, one);
    assert_eventually(keys_left() == 0);
    nxl_lock_free(one);
    nxl_lock_free(two);
    nxl_client_free(client);
}

/* Removed from a majority: the loss names it. */
static void one_is_lost(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = three_names(client, 0, 0);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    for (size_t i = 0; i < 3; i++)
        redis_run(&servers[i], "DEL", "b", NULL);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "'b': ");
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_eventually(keys_left() == 0);
    nxl_lock_free(lock);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(all_of_them),
        api_test(one_server_is_away),
        api_test(two_servers_are_away),
        api_blocking_test(one_is_busy),
        api_test(readers),
        api_blocking_test(adopted),
        api_blocking_test(one_is_lost),
    };
    return on_run(three, "several names over three servers", tests);
}
