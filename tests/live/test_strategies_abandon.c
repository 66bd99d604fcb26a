/* SPDX-License-Identifier: MIT */
/*
 * With every strategy a verb is cancelled, or loses its connection, at each of
 * its steps: before the server has received the step's commands, and after that
 * while its answers are on their way. Afterwards no key of ours is left, no
 * transaction is open, and the same client and lock go on working.
 */
#include "live/strategies_step.h"

enum giving_up { CANCEL, DEADLINE, CUT };

static enum giving_up how;

/* What turns out to be too short is doubled. */
enum { LONGEST_MS = 4000 };
#define SHORTEST_MS (LIVE_INSTRUMENTED ? 500 : 40)

static int deadline_ms;

static void assert_result_is_sound(void)
{
    int rc = op.result;
    if (how == CANCEL)
        assert_result(rc, NXL_CANCELLED, op.lock);
    else if (op.verb == RELEASE && how == DEADLINE)
        assert_result(rc, NXL_UNKNOWN, op.lock);
    else
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN ||
                    rc == NXL_E_UNREACHABLE ||
                    (op.verb == RELEASE && rc == NXL_LOST) ||
                    (op.verb == EXTEND && bare_here() && rc == NXL_LOST));
    bool held = nxl_lock_held(op.lock);
    if (op.verb == ACQUIRE || op.verb == TAKE)
        assert_int_equal(held, rc == NXL_OK);
    else
        assert_int_equal(held, op.verb != RELEASE && rc != NXL_LOST);
}

static bool gives_up(void)
{
    char parameters[32] = PATIENT;
    if (how == DEADLINE)
        snprintf(parameters, sizeof(parameters), "timeout_ms=%d", deadline_ms);
    open_op(parameters);
    bool stopped = stop_at_step();
    if (stopped && how == CANCEL)
        assert_int_equal(nxl_lock_cancel(op.lock), NXL_OK);
    if (stopped && how == CUT)
        proxy_cut(op.proxy, true);
    if (how != DEADLINE)
        let_all_through();
    pthread_join(op.thread, NULL);
    let_all_through();
    return stopped;
}

/* false: the verb has fewer steps, or its deadline came before any of it was
 * sent; then something else was stopped. */
static bool one_step(void)
{
    bool stopped = gives_up();
    bool unsent = how == DEADLINE && op.result == NXL_E_UNREACHABLE;
    if (stopped && !unsent) {
        assert_result_is_sound();
        assert_goes_on();
        if (op.learnt && how != CUT && op.late == 0)
            assert_int_equal(proxy_accepted(op.proxy), 1);
    } else if (!is_late(op.result)) {
        assert_result(op.result, NXL_OK, op.lock);
    }
    close_op();
    return stopped && !unsent;
}

/* The deadline may come before the step on a machine that is busy. */
static bool one_step_or_again(void)
{
    bool stopped = one_step();
    while (!stopped && op.result != NXL_OK && deadline_ms < LONGEST_MS) {
        deadline_ms *= 2;
        redis_run(&server, "FLUSHALL", NULL);
        stopped = one_step();
    }
    return stopped;
}

static unsigned steps_of(enum verb verb)
{
    if (verb == TAKE)
        return 3; /* SETNX; WATCH ... MULTI; GETSET, EXEC */
    enum way way = verb == ACQUIRE   ? here->acquire
                   : verb == EXTEND  ? here->extend
                   : verb == RELEASE ? here->release
                                     : here->inspect;
    return way == BY_WATCH || way == BY_BARE ? 2 : 1;
}

static void sweep(enum verb verb, enum giving_up by, bool learnt)
{
    op.verb = verb;
    how = by;
    op.learnt = learnt;
    op.brief = by == DEADLINE;
    deadline_ms = SHORTEST_MS;
    for (int side = REQUEST; side <= REPLY; side++) {
        op.side = (enum side)side;
        op.step = 0;
        while (op.step < STEPS && one_step_or_again())
            op.step++;
        /* What is owed of a verb that was too late looks like a step. */
        if (learnt && by != DEADLINE)
            assert_int_equal(op.step, steps_of(verb));
        else
            assert_between(op.step, steps_of(verb), STEPS - 1);
    }
}

/* Not without WATCH, where what GETSET wrote cannot be taken back: see
 * stamps_bare. */
static bool takes(void)
{
    return stamps_here() && !bare_here();
}

/* What has not been learnt is learnt by every verb in the same way: each verb
 * does at half of the places, unless NXLOCK_FULL is set. */
static bool is_due(bool learnt, enum verb verb)
{
    return learnt || getenv("NXLOCK_FULL") ||
           ((unsigned)(here - places) + verb) % 2 == 0;
}

static void cancelled(void **state)
{
    for (int learnt = 0; learnt < 2; learnt++)
        for (int verb = ACQUIRE; verb <= (takes() ? TAKE : LOOK); verb++)
            if (verb != RELEASE && is_due(learnt, (enum verb)verb))
                sweep((enum verb)verb, CANCEL, learnt);
}

static void too_late(void **state)
{
    sweep(ACQUIRE, DEADLINE, true);
    if (takes())
        sweep(TAKE, DEADLINE, true);
    sweep(EXTEND, DEADLINE, true);
    sweep(RELEASE, DEADLINE, true);
    sweep(RELEASE, DEADLINE, false);
}

/* Without CLIENT KILL it takes its time to know that nothing comes any more;
 * so at the two oldest each does its half. */
static void cut_off(void **state)
{
    bool old = stamps_here() && here->kind == AGED;
    for (int learnt = 0; learnt < 2; learnt++)
        for (int verb = ACQUIRE; verb <= (takes() ? TAKE : LOOK); verb++)
            if (old ? learnt == (here->age == AGED_2_4)
                    : is_due(learnt, (enum verb)verb))
                sweep((enum verb)verb, CUT, learnt);
}

/* He who took the name keeps it as it is. But what was read before he came,
 * and is written without WATCH after it, is written over his value; an extend
 * finds that out, a release does not. */
static bool written_over(void)
{
    return bare_here() && (op.step > 0 || op.side == REPLY);
}

static void assert_his(void)
{
    if (written_over()) {
        bool after = op.step == 0 || op.side == REQUEST;
        if (op.verb == EXTEND && after)
            assert_result(op.result, NXL_LOST, op.lock);
        return;
    }
    assert_value(KEY, "other");
    assert_between(redis_pttl(&server, KEY), 1, 5000);
}

/* Somebody else takes the name at a step. */
static bool one_change(void)
{
    open_op("");
    bool stopped = stop_at_step();
    if (stopped)
        stranger_sets(KEY, "other", 5000);
    let_all_through();
    pthread_join(op.thread, NULL);
    if (stopped && op.side == REQUEST && !written_over())
        assert_result(op.result, NXL_LOST, op.lock);
    if (stopped) {
        assert_true(op.result == NXL_LOST || op.result == NXL_OK);
        assert_his();
        redis_run(&server, "DEL", KEY, NULL);
        assert_result(look(op.probe), NXL_FREE, op.probe);
        assert_eventually((look(op.probe), nobody_in_multi()));
    }
    close_op();
    redis_run(&server, "FLUSHALL", NULL);
    return stopped;
}

static void taken_meanwhile(void **state)
{
    op.learnt = true;
    op.brief = false;
    for (int verb = EXTEND; verb <= RELEASE; verb++)
        for (int side = REQUEST; side <= REPLY; side++) {
            op.verb = (enum verb)verb;
            op.side = (enum side)side;
            op.step = 0;
            while (op.step < STEPS && one_change())
                op.step++;
            /* A transaction begins anew, and finds that it is lost. */
            assert_between(op.step, steps_of(op.verb), STEPS - 1);
        }
}

/* A client that adopted the token extends it during a step of our extend: that
 * must not shorten what it was promised. */
static bool one_prolongation(void)
{
    nxl_client *others = learnt_client("");
    nxl_lock *heir = new_lock(others, KEY, TTL);
    open_op("");
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(op.lock)), NXL_OK, heir);
    bool stopped = stop_at_step();
    assert_result(nxl_lock_extend(heir, 60000), NXL_OK, heir);
    let_all_through();
    pthread_join(op.thread, NULL);
    assert_result(op.result, NXL_OK, op.lock);
    assert_lasts(KEY, nxl_lock_remaining_ms(heir), 60000);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    close_op();
    end(heir, others);
    return stopped;
}

static void prolonged_meanwhile(void **state)
{
    op.learnt = true;
    op.brief = false;
    op.verb = EXTEND;
    for (int side = REQUEST; side <= REPLY; side++) {
        op.side = (enum side)side;
        op.step = 0;
        while (op.step < STEPS && one_prolongation())
            op.step++;
        assert_between(op.step, steps_of(EXTEND), STEPS - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(cancelled),
        place_test(too_late),
        place_test(cut_off),
        place_test(taken_meanwhile),
        place_test(prolonged_meanwhile),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}
