/* SPDX-License-Identifier: MIT */
/*
 * Rights that change while a client lives: scripts taken away and given back,
 * between operations and in the middle of one; a token acquired by one strategy
 * is released by another. A user who lacks any one of the rights that a
 * strategy needs gets an error that says so, blocks no other client, and keeps
 * a client that still works.
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

static void scripts_taken_and_given(void **state)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_by(BY_SCRIPT, nxl_lock_extend(lock, 30000), NXL_OK, lock);
    rights("-@scripting", NULL);
    assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock); /* falls back */
    assert_by(BY_WATCH, nxl_lock_extend(lock, 1000), NXL_OK, lock);
    assert_between(redis_pttl(&server, KEY), 35000, 40000);
    assert_by(BY_READ, look(lock), NXL_OK, lock);
    assert_by(BY_WATCH, nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    rights("-watch", NULL);
    assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_by(BY_SCRIPT, nxl_lock_extend(lock, 60000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_by(BY_SCRIPT, nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(redis_clients(&server), 2); /* and the monitor */
}

static void all_ways_taken(void **state)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    rights("-@scripting", "-watch");
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_extend(lock, 40000), NXL_E_DENIED, lock);
    assert_told(lock, "NOPERM", "'evalsha'", "allow the user this command");
    assert_int_equal(nxl_lock_deadline(lock), deadline);
    assert_true(nxl_lock_held(lock));
    assert_value(KEY, nxl_lock_token(lock));
    assert_result(nxl_lock_release(lock), NXL_E_DENIED, lock);
    assert_true(redis_exists(&server, KEY));
    /* No other one is begun that could not be ended. */
    nxl_lock *other = new_lock(client, "other", TTL);
    assert_result(nxl_lock_acquire(other, 0), NXL_E_DENIED, other);
    assert_contains(nxl_lock_errmsg(other),
        "neither scripts (+evalsha +eval) nor transactions (+watch +multi "
        "+exec +discard) are allowed");
    assert_false(redis_exists(&server, "other"));

    rights("+@all", NULL);
    /* What was refused is taken back when it may be. */
    assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    assert_result(nxl_lock_release(other), NXL_OK, other);
    nxl_lock_free(other);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* With no right to end a lock none is begun, whatever else may be done; and
 * who may run scripts is asked nothing. */
static void known_at_the_first_acquire(void **state)
{
    static const struct {
        const char *first, *second;
        int result;
    } rows[] = {
        {.first = "-watch", .second = "+get", .result = NXL_E_DENIED},
        {.first = "+watch", .second = "+get", .result = NXL_OK},
        {.first = "+evalsha",
            .second = "+get",
            .result = NXL_E_DENIED}, /* the script is not there */
        {.first = "+eval", .second = "+get", .result = NXL_E_DENIED},
        {.first = "+evalsha", .second = "+eval", .result = NXL_OK},
        {.first = "+evalsha", .second = "+script", .result = NXL_OK},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rights("-@scripting", "-watch");
        redis_run(&server, "ACL", "SETUSER", "alice", rows[i].first,
            rows[i].second, NULL);
        redis_run(&server, "SCRIPT", "FLUSH", NULL);
        nxl_client *fresh = client_here("");
        nxl_lock *one = new_lock(fresh, "one", TTL);
        for (int k = 0; k < 2; k++) {
            assert_result(nxl_lock_acquire(one, 0), rows[i].result, one);
            if (rows[i].result == NXL_OK)
                assert_result(nxl_lock_release(one), NXL_OK, one);
            assert_false(redis_exists(&server, "one"));
        }
        /* The rights come, and the same client goes on. */
        rights("+@all", NULL);
        assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
        assert_result(nxl_lock_release(one), NXL_OK, one);
        end(one, fresh);
    }
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    nxl_client *fresh = client_here("");
    nxl_lock *one = new_lock(fresh, "one", TTL);
    assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
    assert_int_equal(redis_calls(&server, "eval"), 0);
    assert_int_equal(redis_calls(&server, "watch"), 0);
    assert_result(nxl_lock_release(one), NXL_OK, one);
    end(one, fresh);
}

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

/* ------------------------------------------------------ one right is missing
 */

/* Of a lock that is ours, is another's, is gone. */
enum standing { OURS, FOREIGN, GONE };

/* Is there no way without this right? What decides before it is needed is
 * told; DISCARD and UNWATCH never matter, for a connection can be ended. */
static bool needs(const char *right, enum verb verb, enum standing standing)
{
    static const struct need {
        const char *right;
        /* Of whatever stands; else of what is ours. */
        bool extend, release, look, whatever;
    } needs[] = {
        {.right = "-watch", .extend = true, .release = true, .whatever = true},
        {.right = "-getrange",
            .extend = true,
            .release = true,
            .look = true,
            .whatever = true},
        /* A release and an inspection can do without, as before 2.6. */
        {.right = "-pttl", .extend = true},
        {.right = "-exists", .extend = true},
        {.right = "-exists", .look = true, .whatever = true},
        {.right = "-multi", .extend = true, .release = true},
        {.right = "-exec", .extend = true, .release = true},
        {.right = "-del", .release = true},
        {.right = "-pexpire", .extend = true},
    };
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        const struct need *n = &needs[i];
        bool concerned = verb == EXTEND    ? n->extend
                         : verb == RELEASE ? n->release
                                           : n->look;
        if (strcmp(n->right, right) == 0 && concerned)
            return n->whatever || standing == OURS;
    }
    return false;
}

static void try_without(
    const char *right, enum verb verb, enum standing standing)
{
    rights("-@scripting", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&server, "ACL", "SETUSER", "alice", right, NULL);
    if (standing != OURS)
        redis_run(&server, "DEL", KEY, NULL);
    if (standing == FOREIGN)
        stranger_sets(KEY, "other", 0);
    nxl_holder seen = NXL_HOLDER_INIT;
    int rc = verb == EXTEND    ? nxl_lock_extend(lock, 40000)
             : verb == RELEASE ? nxl_lock_release(lock)
                               : nxl_lock_inspect(lock, &seen);
    int found = verb == LOOK       ? (standing == GONE ? NXL_FREE : NXL_OK)
                : standing == OURS ? NXL_OK
                                   : NXL_LOST;
    bool denied = needs(right, verb, standing);
    assert_result(rc, denied ? NXL_E_DENIED : found, lock);
    if (denied)
        assert_contains(nxl_lock_errmsg(lock), "NOPERM");
    if (standing == FOREIGN) {
        assert_value(KEY, "other");
        assert_int_equal(redis_pttl(&server, KEY), -1);
    }
    if (verb == LOOK && rc == NXL_OK && standing == OURS)
        assert_between(seen.left_ms, TTL - 3000, TTL); /* or by the second */
    else if (verb == LOOK && rc == NXL_OK)
        assert_int_equal(seen.left_ms, -1);
    /* Whatever was refused, the client goes on. */
    nxl_lock *next = new_lock(client, "next", TTL);
    bool no_way = denied && strcmp(right, "-watch") == 0 && verb != LOOK;
    assert_result(
        nxl_lock_acquire(next, 0), no_way ? NXL_E_DENIED : NXL_OK, next);
    assert_eventually((look(next), nobody_in_multi()));
    rights("+@all", NULL);
    if (!no_way)
        assert_result(nxl_lock_release(next), NXL_OK, next);
    nxl_lock_free(next);
    if (nxl_lock_held(lock))
        (void)!nxl_lock_release(lock);
    redis_run(&server, "FLUSHALL", NULL);
}

static void without(void **state)
{
    const char *right = *state;
    open_client(state);
    for (int verb = EXTEND; verb <= LOOK; verb++)
        for (int standing = OURS; standing <= GONE; standing++)
            try_without(right, (enum verb)verb, (enum standing)standing);
    close_client(state);
}

#define rights_test(function)                                                  \
    cmocka_unit_test_setup_teardown(function, open_client, close_client)
#define lacking(right)                                                         \
    {                                                                          \
        "without: " right, without, NULL, NULL, right                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        rights_test(scripts_taken_and_given),
        rights_test(all_ways_taken),
        rights_test(known_at_the_first_acquire),
        rights_test(token_goes_along),
        cmocka_unit_test_setup_teardown(
            time_goes_along, open_client, close_unguarded),
        place_test(rights_change_at_a_step),
        lacking("-watch"),
        lacking("-getrange"),
        lacking("-pttl"),
        lacking("-exists"),
        lacking("-multi"),
        lacking("-del"),
        lacking("-pexpire"),
        lacking("-exec"),
        lacking("-discard"),
        lacking("-unwatch"),
    };
    here = &place_of_alice;
    return cmocka_run_group_tests_name(
        here->name, tests, place_open, place_close);
}
