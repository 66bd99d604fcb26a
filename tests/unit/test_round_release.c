/* SPDX-License-Identifier: MIT */
/* Release: whatever the verdict, the key is gone or somebody is told to see
 * to it; and what may have been our own delete is never called a loss. */
#include "support/test.h"

#include "unit/round_rig.h"

static void deleted(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_RELEASE, 1);
    say(&r, 0, mine(T0, LEFT_UNKNOWN));
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_YES);
}

static void votes(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"n", 1, "", VERDICT_NO},
        {"f", 1, "U0", VERDICT_FAULT},
        {"d", 1, "U0", VERDICT_UNKNOWN},
        {"s", 1, "U0", VERDICT_UNKNOWN},
        {"mm", 2, "", VERDICT_YES},
        {"mn", 2, "", VERDICT_NO},
        {"n", 2, "U1", VERDICT_NO},
        {"mf", 2, "U1", VERDICT_FAULT},
        {"ms", 2, "U1", VERDICT_UNKNOWN},
        {"mm", 3, "U2", VERDICT_YES},
        {"mfm", 3, "U1", VERDICT_YES},
        {"mdm", 3, "U1", VERDICT_YES},
        {"nn", 3, "U2", VERDICT_NO},
        {"nfn", 3, "U1", VERDICT_NO},
        {"mnf", 3, "U2", VERDICT_FAULT},
        {"mnd", 3, "U2", VERDICT_UNKNOWN},
        {"mns", 3, "U2", VERDICT_UNKNOWN},
        {"s", 3, "U0 U1 U2", VERDICT_UNKNOWN},
        {"mmm", 4, "U3", VERDICT_YES},
        {"nn", 4, "U2 U3", VERDICT_NO},
        {"mmff", 4, "U2 U3", VERDICT_FAULT},
        {"mmfs", 4, "U2 U3", VERDICT_UNKNOWN},
        {"mmm", 5, "U3 U4", VERDICT_YES},
        {"nfdn", 5, "", VERDICT_OPEN},
        {"nnn", 5, "U3 U4", VERDICT_NO},
    };
    check_votes(ROUND_RELEASE, table, sizeof(table) / sizeof(table[0]));
}

static void lasting_fault_is_undone_too(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_RELEASE, 1);
    say(&r, 0, refused(FAULT_DENIED));
    assert_asks(&r, "U0");
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
    assert_int_equal(r.fault, FAULT_DENIED);
}

/* Cut, and asked again. */
static void start_second_try(struct round *r, unsigned servers)
{
    start(r, ROUND_RELEASE, servers);
    say(r, 0, cut(T0));
    round_tick(r, round_wake(r));
    assert_asks(r, "S0");
}

static void second_try_deletes(void **state)
{
    (void)state;
    struct round r;
    start_second_try(&r, 1);
    say(&r, 0, mine(T0, LEFT_UNKNOWN));
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_YES);
}

static void second_try_finds_nothing(void **state)
{
    (void)state;
    struct round r;
    start_second_try(&r, 1);
    say(&r, 0, plain(OUTCOME_NOT_MINE));
    assert_asks(&r, ""); /* it is gone, that much is sure */
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    assert_int_equal(r.fault, FAULT_UNREACHABLE);
    start_second_try(&r, 3);
    say(&r, 0, plain(OUTCOME_NOT_MINE));
    say(&r, 1, plain(OUTCOME_NOT_MINE));
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    say(&r, 2, plain(OUTCOME_NOT_MINE));
    assert_int_equal(round_verdict(&r), VERDICT_NO);
    start_second_try(&r, 3);
    say(&r, 0, plain(OUTCOME_NOT_MINE));
    say(&r, 1, plain(OUTCOME_NOT_MINE));
    say(&r, 2, mine(T0, LEFT_UNKNOWN));
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
}

static void second_try_fails(void **state)
{
    (void)state;
    struct round r;
    start_second_try(&r, 1);
    say(&r, 0, refused(FAULT_UNREACHABLE));
    assert_asks(&r, "U0");
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
}

static void ends_before_the_second_try(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_RELEASE, 3);
    say(&r, 0, cut(T0));
    say(&r, 1, mine(T0, LEFT_UNKNOWN));
    say(&r, 2, mine(T0, LEFT_UNKNOWN));
    assert_asks(&r, "U0");
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    start(&r, ROUND_RELEASE, 1);
    say(&r, 0, cut(T0));
    round_tick(&r, END);
    assert_asks(&r, "U0");
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
}

static void withdrawn(void **state)
{
    (void)state;
    struct round r;
    struct effect effect;
    start(&r, ROUND_RELEASE, 1);
    round_tick(&r, END);
    assert_true(round_next(&r, &effect));
    assert_int_equal(effect.kind, EFFECT_UNDO);
    round_withdrawn(&r, 0);
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
    start_second_try(&r, 1); /* of the second; the first stays in doubt */
    round_tick(&r, END);
    assert_true(round_next(&r, &effect));
    round_withdrawn(&r, 0);
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
}

static void decided_between_the_sends(void **state)
{
    (void)state;
    struct round r;
    struct effect effect;
    begin(&r, ROUND_RELEASE, 3);
    assert_true(round_next(&r, &effect));
    assert_true(round_next(&r, &effect));
    play(&r, "mm");
    assert_asks(&r, "U2"); /* nothing was sent, but its key is to go */
    assert_int_equal(round_verdict(&r), VERDICT_YES);
}

static void cancelled(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_RELEASE, 3);
    play(&r, "mf");
    round_cancel(&r);
    assert_asks(&r, "U1 U2");
    assert_int_equal(round_verdict(&r), VERDICT_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted),
        cmocka_unit_test(votes),
        cmocka_unit_test(lasting_fault_is_undone_too),
        cmocka_unit_test(second_try_deletes),
        cmocka_unit_test(second_try_finds_nothing),
        cmocka_unit_test(second_try_fails),
        cmocka_unit_test(ends_before_the_second_try),
        cmocka_unit_test(withdrawn),
        cmocka_unit_test(decided_between_the_sends),
        cmocka_unit_test(cancelled),
    };
    return cmocka_run_group_tests_name("round_release", tests, NULL, NULL);
}
