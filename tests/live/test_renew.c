/* SPDX-License-Identifier: MIT */
/*
 * Locks that are kept alive in a blocking program: the keeper is there while
 * there is something to keep, a loss is told once, in time and with its
 * reason, and a lock that was lost does not come back.
 */
#include "renew_rig.h"

#include <sys/wait.h>

static void it_is_held_for_long(void **state)
{
    (void)state;
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    int64_t end_ms = test_now_ms() + 3 * RENEW_MS;
    while (test_now_ms() < end_ms) {
        assert_true(nxl_lock_held(lock));
        assert_value("k", nxl_lock_token(lock));
        test_pause_ms(10);
    }
    assert_true(stats_of(client).renewals >= 4);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "k"));
    end(lock, client);
}

static void the_keeper_comes_and_goes(void **state)
{
    (void)state;
    int before = count_threads();
    nxl_client *client = new_client("");
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

static void removed_and_taken(void **state)
{
    (void)state;
    char why[200];
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&server, "DEL", "k", NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_REMOVED);
    assert_contains(why, "removed at the server");
    assert_null(await_loss(client, 0)); /* once */
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_NONE);
    redis_run(&server, "SET", "k",
        "6f1c9b0e-0000-4000-8000-000000000001@db7:1:backup", "PX", "60000",
        NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_TAKEN);
    assert_contains(why, "db7:1:backup");
    assert_true(redis_exists(&server, "k"));
    assert_int_equal(stats_of(client).losses, 2);
    end(lock, client);
    assert_true(redis_exists(&server, "k")); /* it is another's */
}

/* The loss comes before the key's end at a server that does not answer. */
static void unreachable_is_told_before_the_end(void **state)
{
    (void)state;
    char why[200];
    nxl_client *client = new_client("timeout_ms=400");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_ptr_equal(await_loss(client, 5000), lock);
    uint64_t now = nxl_now_ns();
    assert_false(nxl_lock_held(lock));
    assert_int_equal(
        nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_UNREACHABLE);
    assert_contains(why, "could not be prolonged for");
    assert_true(now <= deadline + LATE_MS * UINT64_C(1000000));
    redis_thaw(&server);
    /* It stands there still, but it was lost. */
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    end(lock, client);
}

static void an_outage_is_survived(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 3000;
    nxl_client *client = new_client("timeout_ms=400");
    nxl_lock *lock = kept_lock(client, "k", &options);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t renewals = 0;
    for (int i = 0; i < 3; i++) {
        redis_freeze(&server);
        test_pause_ms(1000);
        redis_thaw(&server);
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
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    char why[200];
    options.max_hold_ms = 2 * RENEW_MS;
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", &options);
    int64_t from = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_between(test_now_ms() - from, RENEW_MS, 2 * RENEW_MS + LATE_MS);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_EXPIRED);
    assert_contains(why, "max_hold_ms");
    end(lock, client);

    client = new_client("");
    options.max_hold_ms = 0;
    options.min_hold_ms = 4000;
    lock = kept_lock(client, "m", &options);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(nxl_lock_held(lock));
    assert_between(redis_pttl(&server, "m"), 1000, 4000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    end(lock, client);
    assert_true(redis_exists(&server, "m"));
    /* A handle that ends, and a holder that dies, leave it as well. */
    client = new_client("");
    lock = kept_lock(client, "n", &options);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    assert_between(redis_pttl(&server, "n"), 1000, 4000);
}

static void waits_of_others_go_on(void **state)
{
    (void)state;
    nxl_client *client = new_client(""), *theirs = new_client("");
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
    (void)state;
    nxl_client *client = new_client("");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(it_is_held_for_long),
        live_test(the_keeper_comes_and_goes),
        live_test(removed_and_taken),
        live_test(unreachable_is_told_before_the_end),
        live_test(an_outage_is_survived),
        live_test(the_least_and_the_most),
        live_test(waits_of_others_go_on),
        live_test(fork_in_the_middle),
    };
    return live_run("renew");
}
