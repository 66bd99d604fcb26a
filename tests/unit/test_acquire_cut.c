/* SPDX-License-Identifier: MIT */
/* Acquire ended before its time: answers that come too late, a last round
 * cut off by the end of the call, a caller who gives up. */
#include "support/test.h"

#include "unit/acquire_rig.h"

static void stale_outcomes_are_ignored(void **state)
{
    (void)state;
    struct acquire a;
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    say(&a, 0, granted(T0), T0 + MS); /* not asked yet */
    assert_asks(&a, "T S0 S1 S2");
    say(&a, 0, busy(LEFT_UNKNOWN), T0 + MS);
    say(&a, 0, granted(T0), T0 + MS); /* has answered */
    say(&a, 3, granted(T0), T0 + MS); /* no such server */
    say(&a, 1, granted(T0), T0 + MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    say(&a, 2, busy(LEFT_UNKNOWN), T0 + MS);
    say(&a, 1, granted(T0), T0 + MS); /* the round is lost */
    assert_asks(&a, "U1");
    say(&a, 2, granted(T0), T0 + MS);
    say(&a, 0, granted(T0), T0 + MS);
    acquire_tick(&a, T0 + 5 * NS_PER_S);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
}

static void answers_between_the_sends(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    for (int i = 0; i < 3; i++) /* T S0 S1 */
        assert_true(acquire_next(&a, &effect));
    say(&a, 0, refused(FAULT_RETRY), T0 + MS);
    say(&a, 1, refused(FAULT_RETRY), T0 + MS);
    assert_asks(&a, ""); /* nothing was sent to 2 */
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    for (int i = 0; i < 3; i++)
        assert_true(acquire_next(&a, &effect));
    say(&a, 0, granted(T0), T0 + MS);
    say(&a, 1, granted(T0), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
}

/* One busy round, then the last one, which the end of the call cuts off. */
static void cut_off(struct acquire *a, unsigned servers, const char *said)
{
    start(a, servers, 50 * MS, 50 * MS);
    all_say(a, busy(LEFT_UNKNOWN), T0);
    uint64_t now = next_round(a);
    drain(a, (char[WORDS_MAX]){0});
    play(a, said, now);
    assert_int_equal(acquire_wake(a), T0 + 50 * MS);
    acquire_tick(a, T0 + 50 * MS);
}

/* What is unanswered may have been granted, whatever was answered before. */
static void cut_off_after_busy(void **state)
{
    static const struct {
        unsigned servers;
        const char *said, *asks;
        enum verdict verdict;
    } rows[] = {
        {1, "", "U0", VERDICT_UNKNOWN},
        {3, "", "U0 U1 U2", VERDICT_UNKNOWN},
        {3, "f", "U1 U2", VERDICT_UNKNOWN},
        {3, "g", "U0 U1 U2", VERDICT_UNKNOWN},
        {5, "ffg", "U2 U3 U4", VERDICT_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct acquire a;
        cut_off(&a, rows[i].servers, rows[i].said);
        assert_asks(&a, rows[i].asks);
        assert_int_equal(acquire_verdict(&a), rows[i].verdict);
    }
}

/* An earlier token is not at a server that was asked after it was undone, but
 * for one that says so. */
static void busy_by_an_earlier_token(void **state)
{
    (void)state;
    for (unsigned owed = 0; owed < 2; owed++) {
        struct acquire a;
        struct outcome o = busy(600);
        o.earlier_token_may_remain = owed;
        start(&a, 1, 3 * MS, 2 * NS_PER_S);
        all_say(&a, cut(T0), T0);
        uint64_t now = next_round(&a);
        assert_asks(&a, "T S0");
        assert_true(a.earlier_token_left);
        all_say(&a, o, now);
        assert_int_equal(
            acquire_verdict(&a), owed ? VERDICT_UNKNOWN : VERDICT_NO);
    }
}

/* Three servers: what keeps the lock busy in the last round is only a token of
 * an earlier one, which could not be removed. That is not another client. */
static void busy_by_own_tokens_alone(void **state)
{
    (void)state;
    for (unsigned owed = 0; owed < 2; owed++) {
        struct acquire a;
        struct outcome o = busy(600);
        o.earlier_token_may_remain = owed;
        start(&a, 3, 3 * MS, 2 * NS_PER_S);
        play(&a, "gff", T0);
        drain(&a, (char[WORDS_MAX]){0});
        uint64_t now = next_round(&a);
        drain(&a, (char[WORDS_MAX]){0});
        say(&a, 0, o, now);
        say(&a, 1, granted(now), now);
        say(&a, 2, refused(FAULT_RETRY), now);
        drain(&a, (char[WORDS_MAX]){0});
        assert_int_equal(
            acquire_verdict(&a), owed ? VERDICT_FAULT : VERDICT_NO);
    }
}

static void error_after_busy_is_a_fault(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 3 * MS, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    uint64_t now = next_round(&a);
    assert_asks(&a, "S0");
    all_say(&a, refused(FAULT_UNREACHABLE), now);
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    start(&a, 3, 3 * MS, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    now = next_round(&a);
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, refused(FAULT_UNREACHABLE), now);
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
}

/* Silent, then busy, then refused in a round that the end would cut off. */
static void old_silence_does_not_hide_an_error(void **state)
{
    (void)state;
    struct acquire a;
    uint64_t now = T0 + BUDGET;
    start(&a, 1, 400 * MS, 400 * MS);
    acquire_tick(&a, now);
    assert_asks(&a, "U0");
    do {
        now = next_round(&a);
        drain(&a, (char[WORDS_MAX]){0});
        if (acquire_wake(&a) < T0 + 400 * MS)
            say(&a, 0, busy(LEFT_UNKNOWN), now);
    } while (acquire_wake(&a) < T0 + 400 * MS);
    say(&a, 0, refused(FAULT_RETRY), now);
    while (acquire_verdict(&a) == VERDICT_OPEN) {
        now = next_round(&a);
        drain(&a, (char[WORDS_MAX]){0});
        say(&a, 0, refused(FAULT_RETRY), now);
    }
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
}

static void silence_of_a_whole_round_is_not_busy(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 3 * MS, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    uint64_t now = next_round(&a);
    assert_asks(&a, "S0");
    acquire_tick(&a, now + BUDGET);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

/* Busy, a fault, and then cut off: the busy is too long ago. */
static void only_the_round_before_counts(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 50 * MS, 50 * MS);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    uint64_t now = next_round(&a);
    assert_asks(&a, "S0");
    all_say(&a, refused(FAULT_RETRY), now);
    next_round(&a);
    assert_asks(&a, "S0");
    acquire_tick(&a, T0 + 50 * MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void woken_after_the_end(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 50 * MS, 50 * MS);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    acquire_tick(&a, T0 + 50 * MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    start(&a, 1, 50 * MS, 50 * MS);
    all_say(&a, cut(T0), T0);
    acquire_tick(&a, T0 + 50 * MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void cancel_at_each_stage(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    acquire_cancel(&a); /* nothing has been sent */
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    assert_true(acquire_next(&a, &effect));
    assert_true(acquire_next(&a, &effect));
    acquire_cancel(&a);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    start_try(&a, 5);
    play(&a, "gbfu", T0);
    acquire_cancel(&a);
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_asks(&a, "U0 U3 U4");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    assert_true(acquire_wake(&a) == NEVER);
}

static void cancel_of_a_decided_round(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    start_try(&a, 3);
    play(&a, "gbb", T0);
    acquire_cancel(&a); /* before it is known whether to try again */
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    start_try(&a, 3);
    play(&a, "guu", T0);
    assert_true(acquire_next(&a, &effect));
    acquire_cancel(&a); /* the rest of the undoing is still asked for */
    assert_asks(&a, "U1 U2");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    start_try(&a, 3);
    play(&a, "gg", T0);
    acquire_cancel(&a); /* it is ours: released, not cancelled */
    assert_asks(&a, "L2");
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    acquire_cancel(&a);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
}

static void cancel_while_waiting(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NEVER, NEVER);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    acquire_cancel(&a);
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    assert_true(acquire_wake(&a) == NEVER);
    acquire_tick(&a, T0 + NS_PER_S);
    assert_asks(&a, "");
    start(&a, 2, NEVER, NEVER);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    next_round(&a);
    assert_asks(&a, "T S0 S1");
    acquire_cancel(&a);
    assert_asks(&a, "U0 U1");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_outcomes_are_ignored),
        cmocka_unit_test(answers_between_the_sends),
        cmocka_unit_test(cut_off_after_busy),
        cmocka_unit_test(busy_by_an_earlier_token),
        cmocka_unit_test(busy_by_own_tokens_alone),
        cmocka_unit_test(error_after_busy_is_a_fault),
        cmocka_unit_test(old_silence_does_not_hide_an_error),
        cmocka_unit_test(silence_of_a_whole_round_is_not_busy),
        cmocka_unit_test(only_the_round_before_counts),
        cmocka_unit_test(woken_after_the_end),
        cmocka_unit_test(cancel_at_each_stage),
        cmocka_unit_test(cancel_of_a_decided_round),
        cmocka_unit_test(cancel_while_waiting),
    };
    return cmocka_run_group_tests_name("acquire_cut", tests, NULL, NULL);
}
