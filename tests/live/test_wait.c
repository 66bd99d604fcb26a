/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a busy name, beside what line_waits tests: a waiter comes soon
 * after the holder has gone, and the server is asked no more often than the
 * header says.
 */
#include "live/live_rig.h"

#define RETRY_MOST_MS 250 /* the default retry_max_ms */

static struct waiter waiter;

/* How clients of tests that run twice wait: in line, or by polling. */
static const char *way;

static int in_line(void **state)
{
    way = "";
    return live_clean(state);
}

static int polling(void **state)
{
    way = "poll=1";
    return live_clean(state);
}

#define twice(function)                                                        \
    cmocka_unit_test_setup(function, in_line),                                 \
        cmocka_unit_test_setup(function, polling)

static nxl_lock *patient_lock(
    nxl_client *client, int64_t first_ms, int64_t most_ms)
{
    return lock_with(client, "job", .ttl_ms = 5000, .retry_min_ms = first_ms,
        .retry_max_ms = most_ms);
}

static void wait_longer_than_timeout_ms(void **state)
{
    stranger_sets("job", "somebody", 60000);
    nxl_client *client = new_client("timeout_ms=100");
    nxl_lock *lock = new_lock(client, "job", 5000);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 600), NXL_BUSY, lock);
    /* A last attempt must be able to end in time, so it may be earlier. */
    assert_between(test_now_ms() - before, 500, 600 + LATE_MS);
    end(lock, client);
}

static void first_attempt_is_at_once(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = patient_lock(client, 5000, 5000);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_between(test_now_ms() - before, 0, LATE_MS);
    assert_int_equal(redis_calls(&server, "set"), 1);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* 10 ms doubled up to 250 ms, each drawn from its upper half: over a second
 * at least 155 + 6 x 125 ms or at most 310 + 2 x 250 ms fit, and one attempt
 * comes first and one at the end. */
static void waiter_spares_the_server(void **state)
{
    stranger_sets("job", "somebody", 60000);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    nxl_client *client = new_client("poll=1");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 1000), NXL_BUSY, lock);
    long sets = redis_calls(&server, "set");
    assert_between(sets, 4, 13);
    assert_between(redis_calls(&server, "pttl"), sets - 1, sets);
    assert_int_equal(redis_calls(&server, "get"), 0);
    end(lock, client);
}

static void waiter_asks_as_often_as_told(void **state)
{
    stranger_sets("job", "somebody", 60000);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    nxl_client *client = new_client("poll=1");
    nxl_lock *lock = patient_lock(client, 20, 20);
    assert_result(nxl_lock_acquire(lock, 400), NXL_BUSY, lock);
    /* every 10 ... 20 ms, the first and the last one */
    assert_between(redis_calls(&server, "set"), LIVE_INSTRUMENTED ? 3 : 11, 42);
    end(lock, client);
}

/* In line the first looks every 50 ... 100 ms, and whoever is behind it asks
 * every 500 ms, less up to a tenth; each once more at the end. */
static void waiters_in_line_spare_the_server(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_lock *behind = new_lock(client, "job", 5000);
    stranger_sets("job", "somebody", 60000);
    waiter_start(&waiter, lock, 1200);
    assert_eventually(redis_exists(&server, "{job}:nxl-l"));
    long begun = redis_calls(&server, "evalsha");
    assert_result(nxl_lock_acquire(behind, 600), NXL_BUSY, behind);
    assert_int_equal(waiter_join(&waiter), NXL_BUSY);
    long asked = redis_calls(&server, "evalsha") - begun;
    assert_between(asked, LIVE_INSTRUMENTED ? 8 : 14, 24 + 8);
    assert_eventually(!redis_exists(&server, "{job}:nxl-l"));
    nxl_lock_free(behind);
    end(lock, client);
}

/* ----------------------------------------------------- the holder goes away */

static void waiter_comes_after_a_release(void **state)
{
    nxl_client *client = new_client(way), *other = new_client(way);
    nxl_lock *held = new_lock(client, "job", 60000);
    nxl_lock *lock = new_lock(other, "job", 5000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    waiter_start(&waiter, lock, 20000);
    assert_eventually(
        redis_calls(&server, "set") + redis_calls(&server, "evalsha") >= 6);
    int64_t released = test_now_ms();
    assert_result(nxl_lock_release(held), NXL_OK, held);
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    assert_between(waiter.ended_ms - released, 0, RETRY_MOST_MS + LATE_MS);
    assert_value("job", nxl_lock_token(lock));
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(held, client);
    end(lock, other);
}

static void impatient_waiter_comes_sooner(void **state)
{
    nxl_client *client = new_client("poll=1");
    nxl_lock *lock = patient_lock(client, 2, 5);
    stranger_sets("job", "somebody", 0);
    waiter_start(&waiter, lock, 20000);
    assert_eventually(redis_calls(&server, "set") >= 10);
    int64_t gone = test_now_ms();
    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    assert_between(waiter.ended_ms - gone, 0, 5 + LATE_MS);
    end(lock, client);
}

/* The delay has grown to many seconds; what wakes the waiter is that the
 * holder's lease ends. */
static void waiter_comes_when_the_lease_ends(void **state)
{
    nxl_client *client = new_client(way);
    nxl_lock *lock = patient_lock(client, 10, 60000);
    int64_t ends = test_now_ms() + 1000; /* at the earliest */
    stranger_sets("job", "somebody", 1000);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
    assert_between(test_now_ms() - ends, -2, 5 + LATE_MS);
    end(lock, client);
}

/* "Never beyond the end of the holder's lease": nor does the first delay. */
static void long_first_delay_ends_with_the_lease(void **state)
{
    nxl_client *client = new_client(way);
    nxl_lock *lock = patient_lock(client, 10000, 10000);
    int64_t ends = test_now_ms() + 600; /* at the earliest */
    stranger_sets("job", "somebody", 600);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
    assert_between(test_now_ms() - ends, -2, 5 + LATE_MS);
    end(lock, client);
}

static void holder_without_an_end_is_waited_for(void **state)
{
    stranger_sets("job", "somebody", 0);
    nxl_client *client = new_client(way);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_contains(nxl_lock_errmsg(lock), "never expires");
    stranger_sets("job", "somebody", 6500);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_contains(nxl_lock_errmsg(lock), "for at most 6");
    end(lock, client);
}

/* ------------------------------------------------------------------ cancel */

static void waiting_for_ever_can_be_cancelled(void **state)
{
    nxl_client *client = new_client("timeout_ms=100");
    nxl_lock *lock = new_lock(client, "job", 5000);
    stranger_sets("job", "somebody", 0);
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK); /* nothing in progress */
    int64_t began = test_now_ms();
    waiter_start(&waiter, lock, NXL_FOREVER);
    assert_eventually(
        test_now_ms() - began > 400 && redis_calls(&server, "set") >= 7);
    int64_t cancelled = test_now_ms();
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    assert_result(waiter_join(&waiter), NXL_CANCELLED, lock);
    assert_between(waiter.ended_ms - cancelled, 0, LATE_MS);
    assert_false(nxl_lock_held(lock));
    assert_value("job", "somebody");

    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(nxl_lock_acquire(lock, NXL_FOREVER), NXL_OK, lock);
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    assert_false(redis_exists(&server, "job"));
}

/* ------------------------------------------------- the server says nothing */

/* Returns the result of an acquire that nobody answers, which has to end by
 * then. */
static int unanswered(
    nxl_client *client, nxl_lock *lock, int64_t wait_ms, int64_t by_ms)
{
    redis_freeze(&server);
    int64_t before = test_now_ms();
    int rc = nxl_lock_acquire(lock, wait_ms);
    assert_between(test_now_ms() - before, 0, by_ms + LATE_MS);
    assert_false(nxl_lock_held(lock));
    (void)client;
    redis_thaw(&server);
    return rc;
}

static void frozen_server_ends_the_call_in_time(void **state)
{
    nxl_client *client = new_client("timeout_ms=300");
    nxl_lock *lock = new_lock(client, "job", 60000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);

    assert_result(unanswered(client, lock, 0, 300), NXL_UNKNOWN, lock);
    assert_contains(nxl_lock_errmsg(lock), server_url);
    assert_result(unanswered(client, lock, 100, 300), NXL_UNKNOWN, lock);
    assert_result(unanswered(client, lock, 700, 700), NXL_UNKNOWN, lock);
    assert_contains(nxl_lock_errmsg(lock), server_url);

    assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    assert_false(redis_exists(&server, "job"));
}

static void server_that_is_down_is_waited_for(void **state)
{
    nxl_client *client = new_client("timeout_ms=200");
    nxl_lock *lock = new_lock(client, "job", 5000);
    redis_kill(&server);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_between(test_now_ms() - before, 0, LATE_MS);
    assert_contains(nxl_lock_errmsg(lock), server_url);
    assert_contains(nxl_lock_errmsg(lock), "check that the server is running");
    assert_string_equal(nxl_client_errmsg(client), nxl_lock_errmsg(lock));
    before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 500), NXL_E_UNREACHABLE, lock);
    assert_between(test_now_ms() - before, 200, 500 + LATE_MS);

    waiter_start(&waiter, lock, 20000);
    redis_restart(&server);
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    assert_value("job", nxl_lock_token(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(wait_longer_than_timeout_ms),
        live_test(first_attempt_is_at_once),
        live_test(waiter_spares_the_server),
        live_test(waiter_asks_as_often_as_told),
        live_test(waiters_in_line_spare_the_server),
        twice(waiter_comes_after_a_release),
        live_test(impatient_waiter_comes_sooner),
        twice(waiter_comes_when_the_lease_ends),
        twice(long_first_delay_ends_with_the_lease),
        twice(holder_without_an_end_is_waited_for),
        live_test(waiting_for_ever_can_be_cancelled),
        live_test(frozen_server_ends_the_call_in_time),
        live_test(server_that_is_down_is_waited_for),
    };
    return live_run_long("wait");
}
