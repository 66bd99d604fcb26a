/* SPDX-License-Identifier: MIT */
/*
 * Rights that change while a client lives, between operations and in the middle
 * of one: a token acquired by one strategy is released by another. What is said
 * where a right is missing: scenes/rights.
 */
#include "live/strategies_step.h"

static const struct place place_of_alice = {
    "rights", USER, 0, "", NULL, BY_SET, BY_WATCH, BY_WATCH, BY_READ};

static nxl_client *client;
static nxl_lock *lock;

static void rights(const char *first, const char *second)
{
    redis_run(&server, "ACL", "SETUSER", "alice", "+@all", first, second, NULL);
}

static int open_client(void **state)
{
    place_clean(state);
    rights("+@all", NULL);
    client = client_here("");
    lock = new_lock(client, KEY, TTL);
    return 0;
}

static int close_client(void **state)
{
    end(lock, client);
    return place_check(state);
}

/* Where WATCH may be refused, a DEL goes without. */
static int close_unguarded(void **state)
{
    end(lock, client);
    assert_monitor_is_clean(true);
    return 0;
}

/* ------------------------------------------------------ between operations */

/* From one strategy to the next in each direction, with each verb. */
static void token_goes_along(void **state)
{
    static const char *const taken[] = {"+@all", "-@scripting", "-watch",
        "-evalsha", "-eval", "-multi", "-script"};
    enum { SETS = sizeof(taken) / sizeof(taken[0]) };
    for (int i = 0; i < SETS * SETS; i++) {
        rights(taken[i % SETS], NULL);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
        rights(taken[i / SETS], NULL);
        if (i % 2 == 0)
            redis_run(&server, "SCRIPT", "FLUSH", NULL);
        assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
        assert_result(look(lock), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_false(redis_exists(&server, KEY));
        assert_eventually(nobody_in_multi());
    }
}

/* The same of locks that are times: WATCH taken and given back, and TIME. */
static void time_goes_along(void **state)
{
    static const char *const taken[] = {
        "+@all", "-@scripting", "-watch", "-multi", "-exec", "-time"};
    enum { SETS = sizeof(taken) / sizeof(taken[0]) };
    char value[160];
    nxl_client *old = client_here("scheme=timestamp");
    nxl_lock *time = new_lock(old, KEY, TTL);
    for (int i = 0; i < SETS * SETS; i++) {
        rights(taken[i % SETS], NULL);
        assert_result(nxl_lock_acquire(time, 0), NXL_OK, time);
        assert_result(nxl_lock_extend(time, 30000), NXL_OK, time);
        rights(taken[i / SETS], NULL);
        assert_result(nxl_lock_extend(time, 40000), NXL_OK, time);
        assert_result(look(time), NXL_OK, time);
        assert_true(redis_get(&server, KEY, value, sizeof(value)));
        assert_true(
            stamp_is_of(slice_of(value), slice_of(nxl_lock_token(time))));
        assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_result(nxl_lock_release(time), NXL_OK, time);
        assert_false(redis_exists(&server, KEY));
        assert_eventually(nobody_in_multi());
    }
    assert_true(redis_calls(&server, "watch") > 0);
    assert_true(redis_calls(&server, "getset") > 0);
    end(time, old);
}

/* ------------------------------------------------------- in the midst of one
 */

/* The rights of before and after let a verb be carried out in some way. */
static bool changes_at_step(const char *before, const char *after)
{
    rights(before, NULL);
    open_op(PATIENT);
    bool stopped = stop_at_step();
    rights(after, NULL);
    let_all_through();
    pthread_join(op.thread, NULL);
    assert_result(op.result, NXL_OK, op.lock);
    assert_goes_on();
    if (op.learnt)
        assert_int_equal(proxy_accepted(op.proxy), 1);
    close_op();
    return stopped;
}

static void rights_change_at_a_step(void **state)
{
    static const char *const taken[] = {
        "+@all", "-@scripting", "-watch", "-exec", "-pexpire", "-del"};
    unsigned steps = 0;
    for (int i = 0; i < 6; i++)
        for (int verb = ACQUIRE; verb <= LOOK; verb++)
            for (int side = REQUEST; side <= REPLY; side++) {
                op.verb = (enum verb)verb;
                op.side = (enum side)side;
                op.learnt = true;
                op.step = 0;
                const char *before = i == 0 ? "-@scripting" : taken[i];
                bool both = i >= 3; /* WATCH, then another right is missing */
                while (op.step < STEPS &&
                       changes_at_step(both ? "-@scripting" : before,
                           both     ? "-watch"
                           : i == 1 ? "+@all"
                                    : "-@scripting"))
                    op.step++;
                steps += op.step;
            }
    assert_true(steps > 30);
}

#define rights_test(function)                                                  \
    cmocka_unit_test_setup_teardown(function, open_client, close_client)
int main(void)
{
    const struct CMUnitTest tests[] = {
        rights_test(token_goes_along),
        cmocka_unit_test_setup_teardown(
            time_goes_along, open_client, close_unguarded),
        place_test(rights_change_at_a_step),
    };
    here = &place_of_alice;
    return cmocka_run_group_tests_name(
        here->name, tests, place_open, place_close);
}
