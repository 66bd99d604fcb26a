/* SPDX-License-Identifier: MIT */
/*
 * One lock over N servers, all of them well: a majority decides, for every N,
 * odd or even, and each call means what it means on one server.
 */
#include "support/test.h"

#include "live/quorum_rig.h"

static void excludes(size_t count)
{
    nxl_client *one = quorum_client(count, NO_GUARD);
    nxl_client *two = quorum_client(count, NO_GUARD);
    nxl_lock *mine = new_lock(one, "k", 5000);
    nxl_lock *other = new_lock(two, "k", 5000);
    assert_int_equal(nxl_client_servers(one), count);
    connect_all(one);
    for (int i = 0; i < 20; i++) {
        assert_result(nxl_lock_acquire(mine, 0), NXL_OK, mine);
        assert_eventually(standing(count, "k", mine) == count);
        assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
        assert_true(nxl_lock_held(mine));
        assert_false(nxl_lock_held(other));
        assert_eventually(standing(count, "k", mine) == count);
        assert_result(nxl_lock_release(mine), NXL_OK, mine);
        assert_result(nxl_lock_acquire(other, 2000), NXL_OK, other);
        assert_result(nxl_lock_release(other), NXL_OK, other);
        assert_eventually(keys_at(count, "k") == 0);
    }
    end(mine, one);
    end(other, two);
}

static void test_every_n(void **state)
{
    for (size_t count = 1; count <= QUORUM_MAX; count++)
        excludes(count);
}

static void test_lease(void **state)
{
    nxl_client *client = quorum_client(5, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 5000);
    connect_all(client);
    uint64_t before = nxl_now_ns();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t after = nxl_now_ns();
    assert_between(nxl_lock_deadline(lock), before + LEASE_NS(5000),
        after + LEASE_NS(5000));
    before = nxl_now_ns();
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    after = nxl_now_ns();
    assert_between(nxl_lock_deadline(lock), before + LEASE_NS(20000),
        after + LEASE_NS(20000));
    for (size_t i = 0; i < 5; i++)
        assert_eventually(redis_pttl(&servers[i], "k") > 15000);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(5, "k") == 0);
    end(lock, client);
}

/* Who waits gets it when it is free, whatever order the servers say so in. */
static void test_waits(void **state)
{
    static struct waiter w[3];
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 10000);
    nxl_client *own[3];
    nxl_lock *locks[3];
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    for (size_t i = 0; i < 3; i++) {
        own[i] = quorum_client(3, NO_GUARD);
        locks[i] = new_lock(own[i], "k", 10000);
        waiter_start(&w[i], locks[i], 20000);
    }
    assert_eventually(redis_calls(&servers[0], "set") > 10);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    for (size_t turn = 0; turn < 3; turn++) {
        size_t holder = 3;
        assert_eventually((holder = nxl_lock_held(locks[0])   ? 0
                                    : nxl_lock_held(locks[1]) ? 1
                                    : nxl_lock_held(locks[2]) ? 2
                                                              : 3) < 3);
        assert_result(waiter_join(&w[holder]), NXL_OK, locks[holder]);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(nxl_lock_held(locks[i]), i == holder);
        assert_result(nxl_lock_release(locks[holder]), NXL_OK, locks[holder]);
    }
    for (size_t i = 0; i < 3; i++)
        end(locks[i], own[i]);
    end(lock, client);
}

/* ------------------------------------------------------ adopt, break, look */

static void test_adopt(void **state)
{
    nxl_client *client = quorum_client(5, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 10000);
    nxl_lock *heir = new_lock(client, "k", 10000);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(5, "k", lock) == 5);
    /* Where the token does not stand does not matter, in a minority. */
    redis_run(&servers[0], "DEL", "k", NULL);
    redis_run(&servers[1], "SET", "k", "stranger", "PX", "9000", NULL);
    redis_run(&servers[2], "PEXPIRE", "k", "3000", NULL);
    uint64_t after = nxl_now_ns();
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    /* A majority keeps it until the first of them lets it go. */
    assert_between(nxl_lock_deadline(heir), after + LEASE_NS(2000),
        nxl_now_ns() + LEASE_NS(3000));
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_eventually(keys_at(5, "k") == 1); /* the stranger's */
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_LOST, heir);
    nxl_lock_free(heir);
    end(lock, client);
}

static void test_extend_lost(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 10000);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_run(&servers[0], "DEL", "k", NULL);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    redis_run(&servers[1], "SET", "k", "stranger", NULL);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_eventually(!redis_exists(&servers[2], "k"));
    end(lock, client);
}

static void test_inspect(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 10000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(nxl_lock_holder_at(lock, i, 0, &holder), NXL_FREE);
    redis_run(&servers[0], "SET", "k", "a", "PX", "50000", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, &holder), NXL_OK);
    assert_string_equal(holder.value, "a");
    redis_run(&servers[1], "SET", "k", "b", "PX", "40000", NULL);
    redis_run(&servers[2], "SET", "k", "b", "PX", "20000", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_string_equal(holder.value, "b");
    assert_between(holder.left_ms, 15000, 20000);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nxl_lock_holder_at(lock, i, 0, &holder), NXL_OK);
        assert_string_equal(holder.value, i == 0 ? "a" : "b");
    }
    assert_int_equal(nxl_lock_holder_at(lock, 3, 0, &holder), NXL_E_INVALID);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_result(nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_eventually(keys_at(3, "k") == 1);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, &holder), NXL_E_INVALID);
    end(lock, client);
}

/* A key of another use at one server is in nobody's way. */
static void test_other_type(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 10000);
    nxl_holder holder = NXL_HOLDER_INIT;
    redis_run(&servers[0], "RPUSH", "k", "x", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, &holder), NXL_E_WRONG_TYPE);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_run(&servers[1], "RPUSH", "k", "x", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_WRONG_TYPE, lock);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(test_every_n),
        quorum_test(test_lease),
        quorum_test(test_waits),
        quorum_test(test_adopt),
        quorum_test(test_extend_lost),
        quorum_test(test_inspect),
        quorum_test(test_other_type),
    };
    return quorum_run("quorum");
}
