/* SPDX-License-Identifier: MIT */
/*
 * How long a wait in line takes, and what it ends with, when the lock stays
 * busy, when the call is ended from outside, and when the server hangs.
 *
 * Invariant: a call that is over leaves the line, and does so in time. What it
 * leaves behind at a server that hangs is removed as soon as the server
 * answers.
 */
#include "live/fork_rig.h"
#include "live/in_line_rig.h"

#define NAME "job"
#define TTL_MS 1000
#define TIMEOUT_MS 300

static struct waiter own_waiter, after_waiter;

static struct stage {
    nxl_client *before, *own, *after;
    nxl_lock *holder, *lock, *next;
} stage;

/* The lock is held for long; the call on stage.lock is up to the test. */
static void set_stage(const char *parameters)
{
    stage.before = client_on(NO_GUARD);
    stage.own = client_on(parameters);
    stage.after = client_on(NO_GUARD);
    stage.holder = new_lock(stage.before, NAME, 60000);
    stage.lock = new_lock(stage.own, NAME, TTL_MS);
    stage.next = new_lock(stage.after, NAME, TTL_MS);
    assert_result(nxl_lock_acquire(stage.holder, 0), NXL_OK, stage.holder);
}

/* Another one joins behind, and then gets the lock, for the line works. */
static void next_joins(size_t count)
{
    waiter_start(&after_waiter, stage.next, 60000);
    await_with(stage.own, line_listens(NAME, count));
}

static void next_is_served(void)
{
    assert_result(nxl_lock_release(stage.holder), NXL_OK, stage.holder);
    assert_result(waiter_join(&after_waiter), NXL_OK, stage.next);
    assert_true(holds(NAME, stage.next));
    assert_result(nxl_lock_release(stage.next), NXL_OK, stage.next);
    assert_true(is_free(NAME));
}

static void clear_stage(void)
{
    end(stage.holder, stage.before);
    end(stage.lock, stage.own);
    end(stage.next, stage.after);
    assert_eventually(is_free(NAME));
}

/* ---------------------------------------------------------- the lock is busy
 */

static void waits_end_in_time(void **state)
{
    static const int64_t waits_ms[] = {0, 1, 50, 1500, 3};
    set_stage(NO_GUARD);
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        int64_t before = test_now_ms();
        assert_result(CALL(stage.own, acquire, stage.lock, waits_ms[i]),
            NXL_BUSY, stage.lock);
        assert_between(
            test_now_ms() - before, waits_ms[i], waits_ms[i] + LATE_MS);
        assert_contains(
            nxl_lock_errmsg(stage.lock), "another client holds the lock");
        assert_false(nxl_lock_held(stage.lock));
        await_with(stage.own, line_length(NAME) == 0);
    }
    next_joins(1);
    next_is_served();
    clear_stage();
}

static void waiting_for_ever_ends_with_the_lock(void **state)
{
    set_stage(NO_GUARD "&timeout_ms=100");
    begin_wait(&own_waiter, stage.own, stage.lock, NXL_FOREVER);
    await_with(stage.own, line_listens(NAME, 1));
    int64_t began = test_now_ms();
    await_with(stage.own, test_now_ms() > began + 600);
    int64_t released = test_now_ms();
    assert_result(nxl_lock_release(stage.holder), NXL_OK, stage.holder);
    assert_result(end_wait(&own_waiter, stage.own), NXL_OK, stage.lock);
    assert_between(test_now_ms() - released, 0, LATE_MS);
    assert_result(CALL(stage.own, release, stage.lock), NXL_OK, stage.lock);
    assert_true(is_free(NAME));
    clear_stage();
}

/* ----------------------------------------------------- it is ended from
 * outside
 */

static void cancel(void)
{
    assert_int_equal(nxl_lock_cancel(stage.lock), NXL_OK);
}

static void interrupt(void)
{
    assert_int_equal(nxl_lock_interrupt(stage.lock), NXL_OK);
}

static void interrupt_client(void)
{
    nxl_client_interrupt(stage.own);
}

static void ended_from_outside(void (*ends)(void))
{
    quorum_clean(NULL);
    set_stage(NO_GUARD);
    for (int i = 0; i < 2; i++) {
        begin_wait(&own_waiter, stage.own, stage.lock, NXL_FOREVER);
        await_with(stage.own, line_listens(NAME, 1));
        if (i > 0)
            next_joins(2);
        int64_t since = test_now_ms();
        ends();
        assert_result(
            end_wait(&own_waiter, stage.own), NXL_CANCELLED, stage.lock);
        assert_between(test_now_ms() - since, 0, LATE_MS);
        await_with(stage.own, line_length(NAME) == i);
    }
    next_is_served();
    assert_result(CALL(stage.own, acquire, stage.lock, 0), NXL_OK, stage.lock);
    assert_result(CALL(stage.own, release, stage.lock), NXL_OK, stage.lock);
    clear_stage();
}

static void calls_that_are_ended_leave_the_line(void **state)
{
    ended_from_outside(cancel);
    ended_from_outside(interrupt);
    ended_from_outside(interrupt_client);
}

static void handle_freed_in_line(void **state)
{
    set_stage(NO_GUARD);
    begin_wait(&own_waiter, stage.own, stage.lock, NXL_FOREVER);
    await_with(stage.own, line_listens(NAME, 1));
    next_joins(2);
    nxl_lock_free(stage.lock);
    stage.lock = NULL;
    await_with(stage.own, line_length(NAME) == 1);
    next_is_served();
    clear_stage();
}

static void client_freed_in_line(void **state)
{
    set_stage(NO_GUARD);
    begin_wait(&own_waiter, stage.own, stage.lock, NXL_FOREVER);
    await_with(stage.own, line_listens(NAME, 1));
    next_joins(2);
    nxl_client_free(stage.own);
    stage.own = NULL;
    if (!by_loop) {
        int rc = waiter_join(&own_waiter);
        assert_int_equal(rc, NXL_CANCELLED);
    }
    assert_int_equal(line_length(NAME), 1);
    next_is_served();
    clear_stage();
}

/* ------------------------------------------------------------- the child's */

static void child_of_a_waiter_has_no_place(void **state)
{
    set_stage(NO_GUARD);
    begin_wait(&own_waiter, stage.own, stage.lock, 20000);
    await_with(stage.own, line_listens(NAME, 1));
    struct handles h = {stage.own, stage.lock};
    run_child(expect_forked, &h);
    assert_int_equal(line_length(NAME), 1);
    assert_result(nxl_lock_release(stage.holder), NXL_OK, stage.holder);
    assert_result(end_wait(&own_waiter, stage.own), NXL_OK, stage.lock);
    run_child(expect_forked, &h); /* nor has it the lock */
    assert_true(nxl_lock_held(stage.lock));
    assert_true(holds(NAME, stage.lock));
    assert_result(CALL(stage.own, release, stage.lock), NXL_OK, stage.lock);
    assert_true(is_free(NAME));
    clear_stage();
}

static void free_both(void *argument)
{
    struct handles *h = argument;
    nxl_lock_free(h->lock);
    nxl_client_free(h->client);
}

static void child_that_frees_leaves_the_place_alone(void **state)
{
    set_stage(NO_GUARD);
    begin_wait(&own_waiter, stage.own, stage.lock, 20000);
    await_with(stage.own, line_listens(NAME, 1));
    struct handles h = {stage.own, stage.lock};
    run_child(free_both, &h);
    assert_true(line_listens(NAME, 1));
    assert_result(nxl_lock_release(stage.holder), NXL_OK, stage.holder);
    assert_result(end_wait(&own_waiter, stage.own), NXL_OK, stage.lock);
    run_child(free_both, &h);
    assert_true(holds(NAME, stage.lock));
    assert_result(CALL(stage.own, release, stage.lock), NXL_OK, stage.lock);
    clear_stage();
}

/* -------------------------------------------------------- the server hangs */

/* In line, then the server stops answering. */
static void hangs_while_in_line(int64_t wait_ms, bool cancelled)
{
    int64_t most_ms = wait_ms > TIMEOUT_MS ? wait_ms : TIMEOUT_MS;
    quorum_clean(NULL);
    set_stage(NO_GUARD "&timeout_ms=300");
    begin_wait(&own_waiter, stage.own, stage.lock, wait_ms);
    int64_t began = test_now_ms();
    await_with(stage.own, line_listens(NAME, 1));
    redis_freeze(servers);
    if (cancelled) {
        int64_t since = test_now_ms();
        cancel();
        assert_result(
            end_wait(&own_waiter, stage.own), NXL_CANCELLED, stage.lock);
        assert_between(test_now_ms() - since, 0, LATE_MS);
    } else {
        int rc = end_wait(&own_waiter, stage.own);
        assert_between(test_now_ms() - began, wait_ms, most_ms + LATE_MS);
        assert_true(rc == NXL_UNKNOWN || rc == NXL_BUSY);
    }
    assert_false(nxl_lock_held(stage.lock));
    redis_thaw(servers);
    await_with(stage.own, line_length(NAME) == 0);
    next_joins(1);
    next_is_served();
    clear_stage();
}

static void server_hangs_while_in_line(void **state)
{
    hangs_while_in_line(400, false);
    hangs_while_in_line(1200, false);
    hangs_while_in_line(NXL_FOREVER, true);
}

/* Released while the server hangs: who waits gets it afterwards. */
static void server_hangs_and_comes_back(void **state)
{
    set_stage(NO_GUARD "&timeout_ms=300");
    begin_wait(&own_waiter, stage.own, stage.lock, 20000);
    await_with(stage.own, line_listens(NAME, 1));
    redis_freeze(servers);
    int64_t since = test_now_ms();
    await_with(stage.own, test_now_ms() > since + 1500);
    redis_thaw(servers);
    int64_t back = test_now_ms();
    assert_result(nxl_lock_release(stage.holder), NXL_OK, stage.holder);
    assert_result(end_wait(&own_waiter, stage.own), NXL_OK, stage.lock);
    assert_between(test_now_ms() - back, 0, 600 + LATE_MS);
    assert_true(holds(NAME, stage.lock));
    assert_result(CALL(stage.own, release, stage.lock), NXL_OK, stage.lock);
    await_with(stage.own, is_free(NAME));
    clear_stage();
}

/* It is killed: it cannot have granted anything since. */
static void server_dies_while_in_line(void **state)
{
    set_stage(NO_GUARD "&timeout_ms=300");
    begin_wait(&own_waiter, stage.own, stage.lock, 800);
    int64_t began = test_now_ms();
    await_with(stage.own, line_listens(NAME, 1));
    redis_kill(servers);
    int rc = end_wait(&own_waiter, stage.own);
    assert_between(test_now_ms() - began, 300, 800 + LATE_MS);
    assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    redis_restart(servers);
    assert_int_equal(nxl_lock_acquire(stage.next, 2000), NXL_OK);
    assert_int_equal(nxl_lock_release(stage.next), NXL_OK);
    clear_stage();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(waits_end_in_time),
        api_test(waiting_for_ever_ends_with_the_lock),
        api_test(calls_that_are_ended_leave_the_line),
        api_loop_test(handle_freed_in_line),
        api_test(client_freed_in_line),
        api_test(child_of_a_waiter_has_no_place),
        api_test(child_that_frees_leaves_the_place_alone),
        api_test(server_hangs_while_in_line),
        api_test(server_hangs_and_comes_back),
        api_test(server_dies_while_in_line),
    };
    return on_run(one_unix, "line waits", tests);
}
