/* SPDX-License-Identifier: MIT */
/*
 * Locks that are kept alive over one server or three, most of them in a
 * blocking program: the keeper is there while there is something to keep, a
 * majority is enough to renew and to say that it is lost, a loss is told once,
 * in time and with its reason, and a lock that was lost does not come back.
 */
#define QUORUM_MAX 3
#include "live/api_rig.h"
#include "live/renew_rig.h"

#include <sys/wait.h>

static int ttl_ms(void)
{
    return on.servers > 1 ? 900 : RENEW_MS;
}

static nxl_client *renewing_client(void)
{
    return client_on(on.servers > 1 ? NO_GUARD "&timeout_ms=300"
                                    : NO_GUARD "&timeout_ms=400");
}

static nxl_lock *kept(nxl_client *client)
{
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = ttl_ms(), .renew = 1);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    return lock;
}

static void held_for(nxl_client *client, nxl_lock *lock, int ms)
{
    uint64_t renewals = stats_of(client).renewals;
    for (int64_t end_ms = test_now_ms() + ms; test_now_ms() < end_ms;) {
        assert_true(nxl_lock_held(lock));
        if (on.servers == 1)
            assert_true(stands_at(0, "k", lock));
        test_pause_ms(10);
    }
    assert_true(stats_of(client).renewals > renewals);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
}

static void freeze(size_t count)
{
    for (size_t i = 0; i < count; i++)
        redis_freeze(&servers[i]);
}

/* ------------------------------------------------- on one server, and on three
 */

static void removed_and_taken(void **state)
{
    char why[200];
    nxl_client *client = renewing_client();
    nxl_lock *lock = kept(client);
    if (on.servers > 1) {
        redis_run(&servers[1], "DEL", "k", NULL);
        held_for(client, lock, 2 * ttl_ms());
    }
    for (size_t i = 0; i < majority(); i++)
        redis_run(&servers[i], "DEL", "k", NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_REMOVED);
    assert_contains(why, "removed at the server");
    assert_null(await_loss(client, 0)); /* once */
    assert_string_equal(nxl_lock_errmsg(lock), why);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "removed at the server");
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "removed");

    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_NONE);
    assert_string_equal(nxl_lock_errmsg(lock), "");
    for (size_t i = 0; i < majority(); i++)
        redis_run(&servers[i], "SET", "k",
            "6f1c9b0e-0000-4000-8000-000000000001@db7:1:backup", "PX", "60000",
            NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_TAKEN);
    assert_contains(why, "db7:1:backup");
    assert_contains(nxl_lock_errmsg(lock), "db7:1:backup");
    assert_int_equal(stats_of(client).losses, 2);
    end(lock, client);
    assert_int_equal(keys_at(majority(), "k"), majority()); /* another's */
}

/* The loss comes before the key's end at servers that do not answer. */
static void unreachable_is_told_before_the_end(void **state)
{
    char why[200];
    nxl_client *client = renewing_client();
    nxl_lock *lock = kept(client);
    freeze(majority());
    /* One renewal may have been decided before. */
    uint64_t deadline = 0;
    while (nxl_lock_held(lock)) {
        uint64_t next = nxl_lock_deadline(lock);
        deadline = next ? next : deadline;
        test_pause_ms(1);
    }
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_true(nxl_now_ns() <= deadline + LATE_MS * UINT64_C(1000000));
    assert_int_equal(
        nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_UNREACHABLE);
    assert_contains(why, "could not be renewed for");
    assert_null(await_loss(client, 0));
    quorum_mend(NULL);
    /* It may stand there still, but it was lost. */
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    held_for(client, lock, ttl_ms());
    end(lock, client);
    assert_eventually(keys_at(on.servers, "k") == 0);
}

/* ------------------------------------------------------------ on one server */

static void it_is_held_for_long(void **state)
{
    nxl_client *client = renewing_client();
    nxl_lock *lock = kept(client);
    held_for(client, lock, 3 * RENEW_MS);
    assert_true(stats_of(client).renewals >= 4);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&servers[0], "k"));
    end(lock, client);
}

static void the_keeper_comes_and_goes(void **state)
{
    int before = count_threads();
    nxl_client *client = client_on("");
    nxl_lock *plain = new_lock(client, "plain", 5000);
    nxl_lock *lock = kept_lock(client, "k", NULL);
    nxl_lock *other = kept_lock(client, "other", NULL);
    assert_result(nxl_lock_acquire(plain, 0), NXL_OK, plain);
    assert_int_equal(count_threads(), before);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(count_threads(), before + 1);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    assert_int_equal(count_threads(), before + 1);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    test_pause_ms(300);
    assert_int_equal(count_threads(), before + 1); /* for the other one */
    assert_result(nxl_lock_release(other), NXL_OK, other);
    comes_true(count_threads() == before, 2000);
    /* Again, and ended by the client's end. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(count_threads(), before + 1);
    nxl_lock_free(plain);
    nxl_lock_free(other);
    end(lock, client);
    assert_int_equal(count_threads(), before);
}

static void an_outage_is_survived(void **state)
{
    nxl_client *client = renewing_client();
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = 3000, .renew = 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t renewals = 0;
    for (int i = 0; i < 3; i++) {
        redis_freeze(&servers[0]);
        test_pause_ms(1000);
        redis_thaw(&servers[0]);
        renewals = stats_of(client).renewals;
        comes_true(stats_of(client).renewals > renewals, 4000);
        assert_true(nxl_lock_held(lock));
    }
    assert_int_equal(stats_of(client).losses, 0);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void the_least_and_the_most(void **state)
{
    char why[200];
    nxl_client *client = client_on("");
    nxl_lock *lock =
        kept_lock(client, "k", &OPTIONS(.max_hold_ms = 2 * RENEW_MS));
    int64_t from = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_between(test_now_ms() - from, RENEW_MS, 2 * RENEW_MS + LATE_MS);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_EXPIRED);
    assert_contains(why, "max_hold_ms");
    end(lock, client);

    client = client_on("");
    lock = kept_lock(client, "m", &OPTIONS(.min_hold_ms = 4000));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(nxl_lock_held(lock));
    assert_between(redis_pttl(&servers[0], "m"), 1000, 4000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    end(lock, client);
    assert_true(redis_exists(&servers[0], "m"));
    /* A handle that ends, and a holder that dies, leave it as well. */
    client = client_on("");
    lock = kept_lock(client, "n", &OPTIONS(.min_hold_ms = 4000));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    assert_between(redis_pttl(&servers[0], "n"), 1000, 4000);
}

static void waits_of_others_go_on(void **state)
{
    nxl_client *client = client_on(""), *theirs = client_on("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    nxl_lock *busy = new_lock(client, "b", 5000);
    nxl_lock *holder = new_lock(theirs, "b", 30000);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    /* This thread reads for the keeper all the while. */
    assert_result(nxl_lock_acquire(busy, 3 * RENEW_MS), NXL_BUSY, busy);
    assert_true(nxl_lock_held(lock));
    assert_true(stats_of(client).renewals >= 4);
    assert_int_equal(stats_of(client).busy, 1);
    nxl_lock_free(busy);
    end(lock, client);
    end(holder, theirs);
}

/* A child has no keeper: it holds nothing, and disturbs nothing. */
static void fork_in_the_middle(void **state)
{
    nxl_client *client = client_on("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            bool bad = nxl_lock_held(lock) ||
                       nxl_lock_release(lock) != NXL_E_FORKED ||
                       nxl_client_loss_fd(client) != -1 ||
                       nxl_lock_loss(lock, NULL, 0) != NXL_LOSS_NONE;
            nxl_lock_free(lock);
            nxl_client_free(client);
            _exit(bad);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        test_pause_ms(37);
    }
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* ---------------------------------------------------------- on three servers
 */

static void one_of_three_is_away(void **state)
{
    nxl_client *client = renewing_client();
    nxl_lock *lock = kept(client);
    held_for(client, lock, ttl_ms());
    freeze(1);
    held_for(client, lock, 2 * ttl_ms());
    redis_thaw(&servers[0]);
    held_for(client, lock, ttl_ms());
    /* Its key ended there meanwhile, and does not come back. */
    assert_int_equal(keys_at(3, "k"), 2);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redis_kill(&servers[1]);
    held_for(client, lock, 2 * ttl_ms());
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&servers[0], "k"));
    assert_false(redis_exists(&servers[2], "k"));
    end(lock, client);
}

/* A server that forgot the token and came back takes no part in it, and the
 * others go on. */
static void one_after_the_other_restarts(void **state)
{
    nxl_client *client = renewing_client();
    nxl_lock *lock = kept(client);
    redis_kill(&servers[2]);
    redis_restart(&servers[2]);
    held_for(client, lock, 2 * ttl_ms());
    assert_false(redis_exists(&servers[2], "k"));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(3, "k") == 0);
    end(lock, client);
}

static void by_a_loop(void **state)
{
    nxl_event event;
    uint64_t deadline = 0;
    nxl_client *client = renewing_client();
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = ttl_ms(), .renew = 1);
    assert_result(CALL(client, acquire, lock, 5000), NXL_OK, lock);
    int64_t freeze_ms = test_now_ms() + 2 * ttl_ms();
    while (test_now_ms() < freeze_ms) {
        assert_true(nxl_lock_held(lock));
        turn(client, 20);
    }
    freeze(majority());
    while (!nxl_client_next_event(client, &event)) {
        if (nxl_lock_held(lock))
            deadline = nxl_lock_deadline(lock);
        assert_true(test_now_ms() < freeze_ms + 4000);
        turn(client, 20);
    }
    assert_int_equal(event.operation, NXL_OP_HOLD);
    assert_int_equal(event.result, NXL_LOST);
    assert_true(nxl_now_ns() <= deadline + LATE_MS * UINT64_C(1000000));
    assert_true(stats_of(client).renewals >= 4);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_UNREACHABLE);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest one[] = {
        quorum_test(removed_and_taken),
        quorum_test(unreachable_is_told_before_the_end),
        quorum_test(it_is_held_for_long),
        quorum_test(the_keeper_comes_and_goes),
        quorum_test(an_outage_is_survived),
        quorum_test(the_least_and_the_most),
        quorum_test(waits_of_others_go_on),
        quorum_test(fork_in_the_middle),
    };
    const struct CMUnitTest three[] = {
        quorum_test(removed_and_taken),
        quorum_test(unreachable_is_told_before_the_end),
        quorum_test(one_of_three_is_away),
        quorum_test(one_after_the_other_restarts),
        api_loop_test(by_a_loop),
    };
    return on_run(one_tcp, "renew (one server, TCP)", one) +
           on_run(one_unix, "renew (one server)", one) +
           on_run(three, "renew (three servers)", three);
}
