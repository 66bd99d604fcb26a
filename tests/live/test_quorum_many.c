/* SPDX-License-Identifier: MIT */
/*
 * Many contenders for one name over N servers: threads on one client, and locks
 * of one event loop. Never two hold, and nothing is left behind. On a network
 * that answers late: test_quorum_late.c.
 */
#include "support/test.h"

#include <stdatomic.h>

#include "live/api_rig.h"

enum { THREADS = 8, ROUNDS = 40, LOCKS = 60 };

static atomic_int holders;
static atomic_uint together;
static unsigned long counter; /* guarded by a lock at the servers alone */

static int set_up(void **state)
{
    holders = 0;
    together = 0;
    counter = 0;
    return quorum_clean(state);
}

/* Holds for a moment; nothing in here is atomic but the count of who does. */
static void hold(void)
{
    if (atomic_fetch_add(&holders, 1) != 0)
        atomic_fetch_add(&together, 1);
    counter++;
    atomic_fetch_sub(&holders, 1);
}

/* ----------------------------------------------------------------- threads */

static void *contend(void *argument)
{
    nxl_lock *lock = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (nxl_lock_acquire(lock, NXL_FOREVER) != NXL_OK)
            break;
        hold();
        if (nxl_lock_release(lock) != NXL_OK)
            break;
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    nxl_lock *locks[THREADS];
    nxl_client *client = quorum_client(5, NO_GUARD);
    for (size_t i = 0; i < THREADS; i++) {
        locks[i] = new_lock(client, "k", 20000);
        assert_int_equal(
            pthread_create(&threads[i], NULL, contend, locks[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(together, 0);
    assert_int_equal(counter, THREADS * ROUNDS);
    for (size_t i = 0; i < THREADS; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
    assert_eventually(keys_at(5, "k") == 0);
}

/* -------------------------------------------------------------------- loop */

static void await_all(nxl_client *client, int operation, size_t count)
{
    nxl_event event;
    while (count > 0) {
        turn(client, 10000);
        while (nxl_client_next_event(client, &event)) {
            assert_int_equal(event.operation, operation);
            assert_result(event.result, NXL_OK, event.lock);
            count--;
        }
    }
}

static void test_loop(void **state)
{
    char name[16];
    nxl_lock *locks[LOCKS];
    nxl_client *client = quorum_client(5, NO_GUARD);
    for (size_t i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof(name), "loop:%zu", i);
        locks[i] = new_lock(client, name, 20000);
    }
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < LOCKS; i++)
            assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
        await_all(client, NXL_OP_ACQUIRE, LOCKS);
        if (round == 2) { /* nobody waits for these two */
            redis_freeze(&servers[0]);
            redis_kill(&servers[1]);
        }
        for (size_t i = 0; i < LOCKS; i++)
            assert_int_equal(nxl_lock_inspect_start(locks[i]), NXL_PENDING);
        await_all(client, NXL_OP_INSPECT, LOCKS);
        for (size_t i = 0; i < LOCKS; i++)
            assert_int_equal(nxl_lock_extend_start(locks[i], 0), NXL_PENDING);
        await_all(client, NXL_OP_EXTEND, LOCKS);
        for (size_t i = 0; i < LOCKS; i++)
            assert_int_equal(nxl_lock_release_start(locks[i]), NXL_PENDING);
        await_all(client, NXL_OP_RELEASE, LOCKS);
    }
    for (size_t i = 0; i < LOCKS; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

/* ----------------------------------------------------- the token of a round */

/* A round that failed has had its token; the next one has another. */
static void test_fresh_tokens(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", 5000);
    char seen[8][128];
    redis_run(&servers[0], "SET", "k", "other", NULL);
    redis_run(&servers[1], "SET", "k", "other", NULL);
    for (size_t i = 0; i < 8; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        snprintf(seen[i], sizeof(seen[i]), "%s", nxl_lock_token(lock));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
        assert_eventually(!redis_exists(&servers[2], "k"));
    }
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_threads, set_up, quorum_mend),
        cmocka_unit_test_setup_teardown(test_loop, set_up, quorum_mend),
        cmocka_unit_test_setup_teardown(test_fresh_tokens, set_up, quorum_mend),
    };
    return quorum_run("quorum and many");
}
