/* SPDX-License-Identifier: MIT */
/*
 * Locks that are kept alive over three servers: a majority of them is enough
 * to renew, and to say that it is lost.
 */
#include "quorum_rig.h"
#include "renew_rig.h"

enum { TTL_MS = 900 };

static nxl_lock *kept(nxl_client *client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    nxl_lock *lock = kept_lock(client, "k", &options);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    return lock;
}

static void held_for(nxl_client *client, nxl_lock *lock, int ms)
{
    uint64_t renewals = stats_of(client).renewals;
    for (int64_t end_ms = test_now_ms() + ms; test_now_ms() < end_ms;) {
        assert_true(nxl_lock_held(lock));
        test_pause_ms(10);
    }
    assert_true(stats_of(client).renewals > renewals);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
}

static void one_of_three_is_away(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = kept(client);
    held_for(client, lock, TTL_MS);
    redis_freeze(&servers[0]);
    held_for(client, lock, 2 * TTL_MS);
    redis_thaw(&servers[0]);
    held_for(client, lock, TTL_MS);
    /* Its key ended there meanwhile, and does not come back. */
    assert_int_equal(keys_at(3, "k"), 2);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redis_kill(&servers[1]);
    held_for(client, lock, 2 * TTL_MS);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&servers[0], "k"));
    assert_false(redis_exists(&servers[2], "k"));
    end(lock, client);
}

static void two_of_three_are_away(void **state)
{
    (void)state;
    char why[200];
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = kept(client);
    redis_freeze(&servers[0]);
    redis_freeze(&servers[2]);
    /* One renewal may have been decided before. */
    uint64_t deadline = 0;
    while (nxl_lock_held(lock)) {
        uint64_t now = nxl_lock_deadline(lock);
        deadline = now ? now : deadline;
        test_pause_ms(1);
    }
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_true(nxl_now_ns() <= deadline + LATE_MS * UINT64_C(1000000));
    assert_int_equal(
        nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_UNREACHABLE);
    assert_null(await_loss(client, 0));
    redis_thaw(&servers[0]);
    redis_thaw(&servers[2]);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    held_for(client, lock, TTL_MS);
    end(lock, client);
    assert_int_equal(keys_at(3, "k"), 0);
}

static void removed_or_taken_at_a_majority(void **state)
{
    (void)state;
    char why[200];
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = kept(client);
    redis_run(&servers[1], "DEL", "k", NULL);
    held_for(client, lock, 2 * TTL_MS);
    redis_run(&servers[0], "DEL", "k", NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_REMOVED);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);

    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    for (int i = 0; i < 2; i++)
        redis_run(&servers[i], "SET", "k",
            "6f1c9b0e-0000-4000-8000-000000000001@db7", "PX", "9000", NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_TAKEN);
    assert_contains(why, "db7");
    assert_int_equal(stats_of(client).losses, 2);
    end(lock, client);
    assert_int_equal(keys_at(2, "k"), 2); /* another's */
}

/* A server that forgot the token and came back takes no part in it, and the
 * others go on. */
static void one_after_the_other_restarts(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(3, "timeout_ms=300&guard_restarts=0");
    nxl_lock *lock = kept(client);
    redis_kill(&servers[2]);
    redis_restart(&servers[2]);
    held_for(client, lock, 2 * TTL_MS);
    assert_false(redis_exists(&servers[2], "k"));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(3, "k") == 0);
    end(lock, client);
}

/* In a program's own loop. */
static void by_a_loop(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    nxl_lock *lock = kept_lock(client, "k", &options);
    assert_result(nxl_lock_acquire_start(lock, 5000), NXL_PENDING, lock);
    int told = 0;
    uint64_t deadline = 0;
    int64_t freeze_ms = test_now_ms() + 2 * TTL_MS, end_ms = freeze_ms + 4000;
    while (told < 2 && test_now_ms() < end_ms) {
        struct pollfd fds[4];
        nxl_event event;
        int timeout_ms;
        size_t count = nxl_client_pollfds(client, fds, 4, &timeout_ms);
        int most_ms = timeout_ms < 0 || timeout_ms > 20 ? 20 : timeout_ms;
        poll(fds, (nfds_t)count, most_ms);
        assert_int_equal(nxl_client_process(client), NXL_OK);
        if (nxl_lock_held(lock))
            deadline = nxl_lock_deadline(lock);
        if (test_now_ms() > freeze_ms && !servers[0].frozen) {
            redis_freeze(&servers[0]);
            redis_freeze(&servers[1]);
            assert_true(nxl_lock_held(lock));
        }
        while (nxl_client_next_event(client, &event)) {
            assert_int_equal(
                event.operation, told ? NXL_OP_HOLD : NXL_OP_ACQUIRE);
            assert_int_equal(event.result, told ? NXL_LOST : NXL_OK);
            told++;
        }
    }
    assert_int_equal(told, 2);
    assert_true(nxl_now_ns() <= deadline + LATE_MS * UINT64_C(1000000));
    assert_true(stats_of(client).renewals >= 4);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_UNREACHABLE);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(one_of_three_is_away),
        quorum_test(two_of_three_are_away),
        quorum_test(removed_or_taken_at_a_majority),
        quorum_test(one_after_the_other_restarts),
        quorum_test(by_a_loop),
    };
    return quorum_run("renewal over several servers");
}
