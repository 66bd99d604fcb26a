/* SPDX-License-Identifier: MIT */
/*
 * Locks that are kept alive by a program's own loop, by either way to wait:
 * renewals need nothing but its turns, a loss is one event and comes in time,
 * and with the end of a hold nothing more is sent for it, whatever was under
 * way.
 */
#include "loop_rig.h"
#include "renew_rig.h"

static nxl_lock *granted(nxl_client *client, int64_t ttl_ms)
{
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = ttl_ms, .renew = 1);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    return lock;
}

/* Another client may get the memory of one that is gone. */
static void done(nxl_lock *lock, nxl_client *client)
{
    end(lock, client);
    loop.client = NULL;
}

static long scripts(void)
{
    return redis_calls(&server, "eval") + redis_calls(&server, "evalsha");
}

/* For two intervals nothing comes to the server but the test's own, and the
 * loop has nothing to tell. */
static void assert_silence(nxl_client *client)
{
    size_t events = loop.count;
    long before = scripts();
    loop_for(client, RENEW_MS);
    assert_int_equal(scripts(), before);
    assert_int_equal(loop.count, events);
}

/* What was sent to a server that stood still comes there now, over TLS in as
 * many turns as it was sent in. */
static void hear_the_rest(nxl_client *client)
{
    long before;
    do {
        before = scripts();
        loop_for(client, RENEW_MS / 4);
    } while (scripts() != before);
}

static void it_is_held_for_long(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, RENEW_MS);
    int64_t end_ms = test_now_ms() + 3 * RENEW_MS;
    while (test_now_ms() < end_ms) {
        loop_for(client, 20);
        assert_true(nxl_lock_held(lock));
        assert_value("k", nxl_lock_token(lock));
    }
    assert_true(stats_of(client).renewals >= 4);
    assert_int_equal(loop.count, 1);
    assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
    assert_false(redis_exists(&server, "k"));
    assert_silence(client);
    end(lock, client);
}

static void a_loss_is_told_once_and_in_time(void **state)
{
    char why[200], cut[8];
    nxl_client *client = new_client("timeout_ms=400");
    nxl_lock *lock = granted(client, RENEW_MS);
    redis_freeze(&server);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_NONE);
    assert_string_equal(why, "");
    assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_true(nxl_now_ns() <= deadline + LATE_MS * UINT64_C(1000000));
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_deadline(lock), 0);
    assert_int_equal(
        nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_UNREACHABLE);
    assert_contains(why, "could not be renewed for");
    assert_int_equal(
        nxl_lock_loss(lock, cut, sizeof(cut)), NXL_LOSS_UNREACHABLE);
    assert_memory_equal(cut, why, sizeof(cut) - 1);
    assert_int_equal(cut[sizeof(cut) - 1], 0);
    redis_thaw(&server);
    hear_the_rest(client);
    assert_silence(client);
    assert_int_equal(stats_of(client).losses, 1);
    end(lock, client);
}

/* Nobody turns the loop for longer than the lease: it is lost, though the key
 * may have been renewed in time by an answer that nobody read. */
static void a_loop_that_does_not_come(void **state)
{
    char why[200];
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, RENEW_MS);
    test_pause_ms(RENEW_MS + 50);
    assert_false(nxl_lock_held(lock));
    assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_EXPIRED);
    assert_contains(why, "its event loop did not run");
    assert_silence(client);
    end(lock, client);
}

static void acquired_again_after_a_loss(void **state)
{
    char why[200];
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, RENEW_MS);
    for (int i = 0; i < 3; i++) {
        redis_run(&server, "DEL", "k", NULL);
        assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
        assert_int_equal(
            nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_REMOVED);
        /* With a release in between, or without one. */
        if (i == 1) {
            assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
            assert_event(client, lock, NXL_OP_RELEASE, NXL_LOST);
        }
        assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
        assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_NONE);
        assert_string_equal(why, "");
        loop_for(client, RENEW_MS + 100);
        assert_true(nxl_lock_held(lock));
        assert_value("k", nxl_lock_token(lock));
    }
    end(lock, client);
    assert_false(redis_exists(&server, "k"));
}

/* Between its loss at the server and the news of it. */
static void taken_by_another_one(void **state)
{
    char why[200];
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *lock = granted(client, RENEW_MS);
    nxl_lock *other = kept_lock(theirs, "k", NULL);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_TAKEN);
    assert_contains(why, "by another client");
    assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_LOST);
    assert_true(nxl_lock_held(other));
    assert_result(nxl_lock_release(other), NXL_OK, other);
    end(other, theirs);
    end(lock, client);
}

/* ------------------------------------------------- while one is under way */

/* The server stands still and a renewal waits for its answer, or soon will. */
static void stall(nxl_client *client)
{
    uint64_t failed = stats_of(client).renewal_failures;
    redis_freeze(&server);
    loop_until_true(client, stats_of(client).renewal_failures > failed);
}

static void released_while_a_renewal_is_under_way(void **state)
{
    for (int i = 0; i < 3; i++) {
        nxl_client *client = new_client("");
        nxl_lock *lock = granted(client, 1500);
        stall(client);
        loop_for(client, 60 * i);
        assert_true(nxl_lock_held(lock));
        assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
        assert_false(nxl_lock_held(lock));
        loop_wait(client, 0); /* it is sent */
        redis_thaw(&server);
        assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        assert_false(redis_exists(&server, "k"));
        assert_silence(client);
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        done(lock, client);
    }
}

static void freed_while_a_renewal_is_under_way(void **state)
{
    for (int i = 0; i < 3; i++) {
        nxl_client *client = new_client("");
        nxl_lock *lock = granted(client, 1500);
        stall(client);
        loop_for(client, 60 * i);
        if (i % 2) {
            nxl_lock_free(lock);
            loop_wait(client, 0);
            redis_thaw(&server);
            loop_until_true(client, !redis_exists(&server, "k"));
            assert_silence(client);
            nxl_client_free(client);
        } else {
            redis_thaw(&server);
            nxl_client_free(client); /* with its lock */
            assert_false(nxl_lock_held(lock));
            assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
            nxl_lock_free(lock);
        }
        loop.client = NULL; /* another one may get its memory */
        assert_false(redis_exists(&server, "k"));
    }
}

static void other_calls_meanwhile(void **state)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, 1200);
    uint64_t deadline = 0;
    unsigned cancelled = 0;
    int64_t end_ms = test_now_ms() + 4000;
    for (int i = 0; test_now_ms() < end_ms; i++) {
        int operation = i % 2 ? NXL_OP_EXTEND : NXL_OP_INSPECT;
        assert_result(i % 2 ? nxl_lock_extend_start(lock, 0)
                            : nxl_lock_inspect_start(lock),
            NXL_PENDING, lock);
        if (i % 5 == 0)
            assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
        loop_until(client, loop.count + 1);
        nxl_event *event = &loop.event[--loop.count];
        assert_int_equal(event->operation, operation);
        cancelled += event->result == NXL_CANCELLED;
        if (event->result != NXL_CANCELLED)
            loop_check(event, lock, operation, NXL_OK);
        if (event->result == NXL_OK && i % 2 == 0) {
            assert_int_equal(nxl_lock_holder(lock, &holder), NXL_OK);
            assert_true(holder.ours);
        }
        assert_true(nxl_lock_deadline(lock) >= deadline);
        deadline = nxl_lock_deadline(lock);
        loop_for(client, i % 7);
        loop_for(client, i % 50 == 0 ? 420 : 0); /* its renewal's turn */
    }
    assert_true(cancelled > 0);
    assert_true(stats_of(client).renewals > 0);
    assert_int_equal(stats_of(client).losses, 0);
    assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
    end(lock, client);
}

/* -------------------------------------------------- events and their order */

/* The call that finds it out has the result; the reason comes all the same. */
static void an_extend_that_finds_it_lost(void **state)
{
    char why[200];
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, 3000);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_extend_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_EXTEND, NXL_LOST);
    assert_false(nxl_lock_held(lock));
    assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_REMOVED);
    assert_contains(why, "removed at the server");
    assert_int_equal(stats_of(client).losses, 1);
    assert_silence(client);
    end(lock, client);
}

/* Its extend says so when there is no time left to ask who holds the lock. The
 * holder that an earlier loss found is not named again. */
static void a_loss_says_nothing_of_an_earlier_one(void **state)
{
    char why[200];
    int timeout_ms;
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, 2000);
    redis_run(&server, "SET", "k", "theirs", NULL);
    assert_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_TAKEN);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_extend_start(lock, 0), NXL_PENDING, lock);
    (void)nxl_client_pollfds(client, NULL, 0, &timeout_ms); /* it is sent */
    test_pause_ms((int)nxl_lock_remaining_ms(lock) - 60);
    loop_until(client, loop.count + 2);
    assert_int_equal(stats_of(client).losses, 2);
    assert_int_not_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_TAKEN);
    assert_string_not_equal(why, "");
    loop_for(client, 10);
    end(lock, client);
}

/* A grant that is lost before anybody took its event was never one. */
static void lost_before_its_grant_was_taken(void **state)
{
    nxl_event event;
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    loop_until_true(client, nxl_lock_held(lock));
    redis_run(&server, "DEL", "k", NULL);
    loop_until_true(client, stats_of(client).losses == 1);
    assert_true(nxl_client_next_event(client, &event));
    loop_check(&event, lock, NXL_OP_ACQUIRE, NXL_LOST);
    assert_false(nxl_client_next_event(client, &event));
    loop_for(client, 100); /* its release, to be sure */
    assert_silence(client);
    end(lock, client);
}

static bool readable(int fd)
{
    struct pollfd look = {fd, POLLIN, 0};
    return poll(&look, 1, 0) == 1;
}

/* The descriptor tells of what waits, and of nothing else. */
static void the_descriptor_of_losses(void **state)
{
    nxl_event event;
    nxl_client *client = new_client("");
    nxl_lock *lock = granted(client, RENEW_MS);
    int fd = nxl_client_loss_fd(client);
    assert_true(fd >= 0);
    for (int i = 0; i < 3; i++) {
        assert_false(readable(fd));
        redis_run(&server, "DEL", "k", NULL);
        loop_until_true(client, stats_of(client).losses == (uint64_t)i + 1);
        assert_true(readable(fd));
        assert_int_equal(nxl_client_loss_fd(client), fd);
        if (i == 0)
            assert_true(nxl_client_next_event(client, &event));
        /* Who goes on with the lock needs no news of it. */
        if (i == 1) {
            assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
            assert_false(readable(fd));
            assert_event(client, lock, NXL_OP_RELEASE, NXL_LOST);
        }
        assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
        assert_false(readable(fd));
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    }
    redis_run(&server, "DEL", "k", NULL);
    loop_until_true(client, stats_of(client).losses == 4);
    nxl_lock_free(lock);
    assert_false(readable(fd));
    assert_false(nxl_client_next_event(client, &event));
    nxl_client_free(client);
}

/* What is taken over shortly before its end is prolonged at once. */
static void adopted_with_little_left(void **state)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    for (int i = 0; i < 4; i++) {
        nxl_lock *plain = new_lock(theirs, "k", 800);
        assert_result(nxl_lock_acquire(plain, 0), NXL_OK, plain);
        nxl_lock *lock = lock_with(client, "k", .ttl_ms = 6000, .renew = 1);
        assert_result(nxl_lock_adopt_start(lock, nxl_lock_token(plain)),
            NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ADOPT, NXL_OK);
        loop_until_true(client, nxl_lock_remaining_ms(lock) > 2000);
        assert_true(redis_pttl(&server, "k") > 2000);
        assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        nxl_lock_free(lock);
        nxl_lock_free(plain);
    }
    assert_int_equal(stats_of(client).losses, 0);
    nxl_client_free(theirs);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(it_is_held_for_long),
        loop_test(a_loss_is_told_once_and_in_time),
        loop_test(a_loop_that_does_not_come),
        loop_test(acquired_again_after_a_loss),
        loop_test(taken_by_another_one),
        loop_test(released_while_a_renewal_is_under_way),
        loop_test(freed_while_a_renewal_is_under_way),
        loop_test(other_calls_meanwhile),
        loop_test(an_extend_that_finds_it_lost),
        loop_test(a_loss_says_nothing_of_an_earlier_one),
        loop_test(lost_before_its_grant_was_taken),
        loop_test(the_descriptor_of_losses),
        loop_test(adopted_with_little_left),
    };
    return live_run_long("renewal by a loop");
}
