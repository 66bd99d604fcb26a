/* SPDX-License-Identifier: MIT */
/* Acquire over several rounds: when the next one starts, and with which
 * token. */
#include "support/test.h"

#include "unit/acquire_rig.h"

static void busy_is_tried_again(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NS_PER_S, 2 * NS_PER_S);
    say(&a, 0, busy(LEFT_UNKNOWN), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    uint64_t wake = acquire_wake(&a);
    assert_between(wake, T0 + MS + FIRST / 2, T0 + MS + FIRST);
    acquire_tick(&a, wake - 1);
    assert_asks(&a, "");
    say(&a, 0, granted(T0), wake - 1); /* of the first round: stale */
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_false(a.want_left);
    acquire_tick(&a, wake);
    assert_true(a.want_left);
    assert_asks(&a, "S0"); /* the token was not taken */
    say(&a, 0, granted(wake), wake + MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    assert_int_equal(a.deadline, wake + 988 * MS);
}

static void delays_grow(void **state)
{
    (void)state;
    struct acquire a;
    uint64_t now = T0, delay = 0;
    start(&a, 1, NEVER, NEVER);
    for (int i = 0; i < 1000; i++) {
        all_say(&a, busy(LEFT_FOREVER), now);
        delay = acquire_wake(&a) - now;
        assert_in_range(delay, FIRST / 2, MOST);
        now = next_round(&a);
        assert_asks(&a, "S0");
    }
    assert_in_range(delay, MOST / 2, MOST);
    say(&a, 0, granted(now), now);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
}

static struct outcome busy_with_several(void)
{
    struct outcome o = busy(LEFT_UNKNOWN);
    o.several_holders = true;
    return o;
}

static uint64_t asked_round(struct acquire *a)
{
    uint64_t at = next_round(a);
    drain(a, (char[WORDS_MAX]){0});
    return at;
}

/* Only a round that was lost to several holders counts, and then it is asked
 * that nobody joins them, for longer than until the next round. */
static void several_holders_are_held_back(void **state)
{
    (void)state;
    static const unsigned servers[] = {1, 3};
    for (unsigned n = 0; n < 2; n++) {
        struct acquire a;
        start(&a, servers[n], NEVER, NEVER);
        assert_false(a.asks_kind);
        for (int i = 0; i < 10; i++) {
            all_say(&a, busy(LEFT_UNKNOWN), a.now + MS);
            asked_round(&a);
            assert_int_equal(a.asks_kind, i > 0);
            assert_int_equal(a.hold_back_ms, 0);
        }
        all_say(&a, busy_with_several(), a.now + MS);
        for (int i = 0; i < 100; i++) {
            uint64_t at = asked_round(&a);
            assert_between(a.hold_back_ms, 60, 1000);
            all_say(&a, busy_with_several(), at + MS);
            uint64_t next = acquire_wake(&a);
            assert_true(2 * (next - at - MS) <= a.hold_back_ms * MS);
        }
    }
}

static void doubt_takes_a_fresh_token(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    start(&a, 1, NEVER, NEVER);
    all_say(&a, cut(T0), T0);
    next_round(&a);
    assert_asks(&a, "T S0");
    all_say(&a, refused(FAULT_RETRY), acquire_wake(&a) - 1);
    next_round(&a);
    assert_asks(&a, "S0");
    acquire_tick(&a, acquire_wake(&a)); /* silent */
    assert_true(acquire_next(&a, &effect));
    acquire_withdrawn(&a, 0);
    assert_asks(&a, "");
    next_round(&a);
    assert_asks(&a, "S0");
    acquire_tick(&a, acquire_wake(&a));
    assert_asks(&a, "U0");
    next_round(&a);
    assert_asks(&a, "T S0");
    /* Granted, but too late. */
    say(&a, 0, granted(T0), T0 + 3 * NS_PER_S);
    assert_asks(&a, "U0");
    next_round(&a);
    assert_asks(&a, "T S0");
    acquire_cancel(&a);
    assert_asks(&a, "U0");
}

static void many_servers_take_a_fresh_token(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 2, NEVER, NEVER);
    say(&a, 1, busy(LEFT_UNKNOWN), T0);
    assert_asks(&a, "U0");
    next_round(&a);
    assert_asks(&a, "T S0 S1");
    all_say(&a, refused(FAULT_RETRY), acquire_wake(&a) - 1);
    next_round(&a);
    assert_asks(&a, "T S0 S1");
}

static void wakes_when_the_holder_ends(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NEVER, NEVER);
    all_say(&a, busy(0), T0); /* as if it had been asked */
    assert_between(acquire_wake(&a), T0 + MS, T0 + 2 * MS);
    uint64_t now = next_round(&a);
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, busy(3), now);
    assert_between(acquire_wake(&a), now + 4 * MS, now + 5 * MS);
    now = next_round(&a);
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, busy(INT64_MAX), now);
    assert_true(acquire_wake(&a) <= now + MOST);
    now = next_round(&a); /* an old answer is no answer */
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, busy(LEFT_UNKNOWN), now);
    assert_true(acquire_wake(&a) >= now + FIRST / 2);
    assert_int_equal(a.left_ms, LEFT_UNKNOWN);
}

static void wakes_for_the_first_of_two_holders(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 4, NEVER, NEVER);
    say(&a, 0, busy(9), T0);
    say(&a, 1, busy(1), T0);
    assert_asks(&a, "U2 U3");
    assert_int_equal(a.left_ms, 1);
    assert_between(acquire_wake(&a), T0 + 2 * MS, T0 + 3 * MS);
}

static void left_does_not_hurry_a_broken_quorum(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 3, NEVER, NEVER);
    say(&a, 0, refused(FAULT_RETRY), T0);
    say(&a, 1, granted(T0), T0);
    say(&a, 2, refused(FAULT_RETRY), T0);
    assert_asks(&a, "U1");
    assert_true(acquire_wake(&a) >= T0 + FIRST / 2);
    start(&a, 3, NEVER, NEVER);
    say(&a, 0, busy(0), T0);
    acquire_tick(&a, T0 + BUDGET); /* the other two are silent */
    assert_asks(&a, "U1 U2");
    assert_true(acquire_wake(&a) >= T0 + BUDGET + FIRST / 2);
}

static void no_wait_is_one_round(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 0, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    start(&a, 1, 0, 2 * NS_PER_S);
    all_say(&a, refused(FAULT_UNREACHABLE), T0);
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    start(&a, 1, 0, 2 * NS_PER_S);
    all_say(&a, cut(T0), T0 + MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void last_round_at_the_end_of_the_wait(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 3 * MS, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0);
    assert_int_equal(next_round(&a), T0 + 3 * MS);
    assert_asks(&a, "S0");
    assert_int_equal(acquire_wake(&a), T0 + 3 * MS + BUDGET);
    all_say(&a, busy(LEFT_UNKNOWN), T0 + 4 * MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    assert_true(acquire_wake(&a) == NEVER);
}

/* The wait fills the call, so the last round starts early enough to end. */
static uint64_t last_start(uint64_t slowest_answer)
{
    struct acquire a;
    uint64_t end = T0 + 400 * MS, now = T0 + slowest_answer;
    start(&a, 1, 400 * MS, 400 * MS);
    all_say(&a, busy(LEFT_UNKNOWN), now);
    while (acquire_verdict(&a) == VERDICT_OPEN) {
        now = next_round(&a);
        assert_true(now < end);
        drain(&a, (char[WORDS_MAX]){0});
        all_say(&a, busy(LEFT_UNKNOWN), now);
    }
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    return now - T0;
}

static void last_round_can_end_in_time(void **state)
{
    (void)state;
    assert_int_equal(last_start(0), 380 * MS);
    assert_int_equal(last_start(MS / 4), 380 * MS);
    assert_int_equal(last_start(20 * MS), 360 * MS);
    assert_int_equal(last_start(99 * MS), 300 * MS); /* the budget */
}

static void no_time_for_another_round(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 80 * MS, 80 * MS);
    all_say(&a, busy(LEFT_UNKNOWN), T0 + 30 * MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
}

static void silent_then_no_time(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, BUDGET, BUDGET);
    acquire_tick(&a, T0 + BUDGET);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

/* The first round leaves a server 10 ms of its reconnect delay. */
static void connects_by_the_last_start(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 0, 2 * NS_PER_S);
    assert_int_equal(a.connect_by, T0 + 10 * MS);
    start(&a, 1, 300 * MS, 2 * NS_PER_S);
    assert_int_equal(a.connect_by, T0 + 300 * MS);
    all_say(&a, refused(FAULT_UNREACHABLE), T0 + 20 * MS);
    while (acquire_verdict(&a) == VERDICT_OPEN) {
        uint64_t now = next_round(&a);
        assert_int_equal(a.connect_by, T0 + 300 * MS);
        drain(&a, (char[WORDS_MAX]){0});
        all_say(&a, refused(FAULT_UNREACHABLE), now);
    }
    start(&a, 3, NEVER, NEVER);
    assert_true(a.connect_by > NEVER / 2);
}

/* A round that nobody answered does not tell how long one takes: the rest of
 * the wait is used. */
static void silence_is_not_a_long_round(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 150 * MS, 150 * MS);
    acquire_tick(&a, T0 + BUDGET);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    next_round(&a);
    assert_asks(&a, "T S0");
}

static void passing_fault_is_tried_again(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NS_PER_S, 2 * NS_PER_S);
    all_say(&a, refused(FAULT_UNREACHABLE), T0);
    uint64_t now = next_round(&a);
    assert_asks(&a, "S0");
    say(&a, 0, granted(now), now);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    assert_int_equal(a.fault, FAULT_UNREACHABLE);
    start(&a, 1, 3 * MS, 2 * NS_PER_S);
    all_say(&a, refused(FAULT_UNREACHABLE), T0);
    now = next_round(&a);
    assert_asks(&a, "S0");
    all_say(&a, refused(FAULT_RETRY), now); /* the last round's is told */
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    assert_int_equal(a.fault, FAULT_RETRY);
}

static void lasting_fault_is_final(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NEVER, NEVER);
    all_say(&a, refused(FAULT_DENIED), T0);
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    assert_int_equal(a.fault, FAULT_DENIED);
    start(&a, 3, NEVER, NEVER);
    say(&a, 0, refused(FAULT_DENIED), T0);
    say(&a, 1, busy(LEFT_UNKNOWN), T0);
    assert_asks(&a, "U2"); /* the other two may still grant */
    next_round(&a);
    assert_asks(&a, "T S0 S1 S2");
    play(&a, "gb", T0);
    say(&a, 2, refused(FAULT_DENIED), T0); /* one in each round */
    assert_asks(&a, "U0");
    next_round(&a);
    assert_asks(&a, "T S0 S1 S2");
    say(&a, 0, refused(FAULT_DENIED), T0);
    say(&a, 1, refused(FAULT_DENIED), T0);
    assert_asks(&a, "U2");
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
}

static void late_grant_is_tried_again(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, 2 * NS_PER_S, 2 * NS_PER_S);
    say(&a, 0, granted(T0), T0 + 990 * MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    uint64_t now = next_round(&a);
    assert_asks(&a, "T S0");
    say(&a, 0, granted(now), now + 990 * MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_EXPIRED);
    start(&a, 1, 2 * NS_PER_S, 2 * NS_PER_S);
    say(&a, 0, granted(T0), T0 + 990 * MS);
    assert_asks(&a, "U0");
    next_round(&a);
    assert_asks(&a, "T S0");
    say(&a, 0, busy(LEFT_UNKNOWN), T0 + 2 * NS_PER_S);
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
}

/* The server was not tried at once, because an earlier attempt had failed; and
 * then it refused at once. So there is time for another round near the end. */
static void waiting_to_connect_is_no_long_round(void **state)
{
    (void)state;
    struct acquire a;
    struct outcome down = refused(FAULT_UNREACHABLE);
    start(&a, 1, 2 * NS_PER_S, 2 * NS_PER_S);
    down.tried_at = T0 + 500 * MS;
    say(&a, 0, down, T0 + 501 * MS);
    assert_asks(&a, "");
    next_round(&a);
    assert_int_equal(a.connect_by, T0 + 2 * NS_PER_S - LAST_REQUEST_SLACK);
    /* One that was tried before the round began took all of the round. */
    start(&a, 1, 2 * NS_PER_S, 2 * NS_PER_S);
    down.tried_at = T0 - 500 * MS;
    say(&a, 0, down, T0 + 40 * MS);
    assert_asks(&a, "");
    next_round(&a);
    assert_int_equal(a.connect_by, T0 + 2 * NS_PER_S - 80 * MS);
}

/* Several servers have no line; and only while another round is waited for. */
static void may_line_up(void **state)
{
    (void)state;
    struct acquire a;
    start(&a, 1, NS_PER_S, 2 * NS_PER_S);
    assert_false(a.may_line_up);
    say(&a, 0, busy(LEFT_UNKNOWN), T0 + MS);
    assert_asks(&a, "");
    assert_true(a.may_line_up);
    next_round(&a);
    assert_false(a.may_line_up);
    start(&a, 3, NS_PER_S, 2 * NS_PER_S);
    all_say(&a, busy(LEFT_UNKNOWN), T0 + MS);
    drain(&a, (char[WORDS_MAX]){0});
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_false(a.may_line_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(may_line_up),
        cmocka_unit_test(busy_is_tried_again),
        cmocka_unit_test(delays_grow),
        cmocka_unit_test(several_holders_are_held_back),
        cmocka_unit_test(doubt_takes_a_fresh_token),
        cmocka_unit_test(many_servers_take_a_fresh_token),
        cmocka_unit_test(wakes_when_the_holder_ends),
        cmocka_unit_test(wakes_for_the_first_of_two_holders),
        cmocka_unit_test(left_does_not_hurry_a_broken_quorum),
        cmocka_unit_test(no_wait_is_one_round),
        cmocka_unit_test(last_round_at_the_end_of_the_wait),
        cmocka_unit_test(last_round_can_end_in_time),
        cmocka_unit_test(no_time_for_another_round),
        cmocka_unit_test(silent_then_no_time),
        cmocka_unit_test(connects_by_the_last_start),
        cmocka_unit_test(silence_is_not_a_long_round),
        cmocka_unit_test(waiting_to_connect_is_no_long_round),
        cmocka_unit_test(passing_fault_is_tried_again),
        cmocka_unit_test(lasting_fault_is_final),
        cmocka_unit_test(late_grant_is_tried_again),
    };
    return cmocka_run_group_tests_name("acquire_wait", tests, NULL, NULL);
}
