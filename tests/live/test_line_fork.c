/* SPDX-License-Identifier: MIT */
/*
 * A process that forks while it waits in line: the child has neither its place
 * nor, later, the lock, and what the child frees changes nothing for the
 * parent.
 */
#include "live/fork_rig.h"
#include "live/in_line_rig.h"

#define NAME "job"

static struct waiter own_waiter;

static struct stage {
    nxl_client *before, *own;
    nxl_lock *holder, *lock;
} stage;

static void set_stage(void)
{
    stage.before = client_on(NO_GUARD);
    stage.own = client_on(NO_GUARD);
    stage.holder = new_lock(stage.before, NAME, 60000);
    stage.lock = new_lock(stage.own, NAME, 1000);
    assert_result(nxl_lock_acquire(stage.holder, 0), NXL_OK, stage.holder);
}

static void clear_stage(void)
{
    end(stage.holder, stage.before);
    end(stage.lock, stage.own);
    assert_eventually(is_free(NAME));
}

static void child_of_a_waiter_has_no_place(void **state)
{
    set_stage();
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
    set_stage();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(child_of_a_waiter_has_no_place),
        api_test(child_that_frees_leaves_the_place_alone),
    };
    return on_run(one_unix, "line and fork", tests);
}
