/* SPDX-License-Identifier: MIT */
/* Extend, adopt and inspect, and what all rounds share: the vote, asking
 * again, the deadline. */
#include "support/test.h"

#include "unit/round_rig.h"

static void asks_all_at_once(void **state)
{
    (void)state;
    struct round r;
    begin(&r, ROUND_EXTEND, 3);
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    assert_asks(&r, "S0 S1 S2");
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    assert_int_equal(round_wake(&r), END);
}

static void extend_gives_the_deadline(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, mine(T0 + 3, 5000));
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    assert_int_equal(r.deadline, T0 + 3 + LEASE);
    assert_true(round_wake(&r) == NEVER);
}

static void quorum_of_mine_decides(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        struct round r;
        start(&r, ROUND_EXTEND, n);
        unsigned q = quorum_of(n);
        char leaves[WORDS_MAX] = "";
        for (unsigned i = 0; i < q; i++) {
            assert_int_equal(round_verdict(&r), VERDICT_OPEN);
            say(&r, i, mine(T0 + 100 - i, 1000));
        }
        for (unsigned i = q; i < n; i++)
            add_ask(
                leaves, &(struct effect){.kind = EFFECT_ABANDON, .server = i});
        if (n > q)
            assert_int_equal(round_verdict(&r), VERDICT_OPEN);
        assert_asks(&r, leaves);
        assert_int_equal(round_verdict(&r), VERDICT_YES);
        assert_int_equal(r.deadline, T0 + 100 - (q - 1) + LEASE);
    }
}

static void majority_of_not_mine_decides(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        struct round r;
        start(&r, ROUND_EXTEND, n);
        unsigned enough = n - quorum_of(n) + 1;
        for (unsigned i = 0; i < enough; i++) {
            assert_int_equal(round_verdict(&r), VERDICT_OPEN);
            say(&r, i, plain(OUTCOME_NOT_MINE));
        }
        drain(&r, (char[WORDS_MAX]){0});
        assert_int_equal(round_verdict(&r), VERDICT_NO);
    }
}

static void votes_of_extend(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"f", 1, "", VERDICT_FAULT},
        {"d", 1, "", VERDICT_UNKNOWN},
        {"s", 1, "L0", VERDICT_UNKNOWN},
        {"mn", 2, "", VERDICT_NO},
        {"mf", 2, "", VERDICT_FAULT},
        {"md", 2, "", VERDICT_UNKNOWN},
        {"ms", 2, "L1", VERDICT_UNKNOWN},
        {"mnf", 3, "", VERDICT_FAULT},
        {"mnd", 3, "", VERDICT_UNKNOWN},
        {"mns", 3, "L2", VERDICT_UNKNOWN},
        {"fs", 3, "L1 L2", VERDICT_UNKNOWN},
        {"ffs", 3, "L2", VERDICT_FAULT},
        {"mfm", 3, "", VERDICT_YES},
        {"mm", 3, "L2", VERDICT_YES},
        {"nfn", 3, "", VERDICT_NO},
        {"mmnf", 4, "", VERDICT_FAULT},
        {"mmns", 4, "L3", VERDICT_UNKNOWN},
        {"nn", 4, "L2 L3", VERDICT_NO},
        {"mmfm", 4, "", VERDICT_YES},
        {"mmnnm", 5, "", VERDICT_YES},
        {"mffns", 5, "L4", VERDICT_FAULT},
        {"mdfns", 5, "L4", VERDICT_UNKNOWN},
    };
    check_votes(ROUND_EXTEND, table, sizeof(table) / sizeof(table[0]));
}

static void votes_of_tell(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"m", 1, "", VERDICT_YES},
        {"n", 1, "", VERDICT_NO},
        {"f", 1, "", VERDICT_FAULT},
        {"d", 1, "", VERDICT_UNKNOWN},
        {"s", 1, "L0", VERDICT_UNKNOWN},
    };
    check_votes(ROUND_TELL, table, sizeof(table) / sizeof(table[0]));
}

/* The answer to the second try after one that may have been applied. */
static enum verdict second_answer(enum round_kind kind, struct outcome outcome)
{
    struct round r;
    start(&r, kind, 1);
    say(&r, 0, cut(T0));
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, outcome);
    return round_verdict(&r);
}

/* What gives the lock back may be why the token is not there any more. */
static void not_mine_may_be_its_own_doing(void **state)
{
    (void)state;
    static const struct {
        enum round_kind kind;
        enum verdict not_mine;
    } rows[] = {
        {ROUND_EXTEND, VERDICT_NO},
        {ROUND_RELEASE, VERDICT_UNKNOWN},
        {ROUND_CAP, VERDICT_UNKNOWN},
        {ROUND_ADOPT, VERDICT_NO},
        {ROUND_TELL, VERDICT_NO},
        {ROUND_TELL_OPEN, VERDICT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum round_kind kind = rows[i].kind;
        assert_int_equal(second_answer(kind, mine(T0, 1000)), VERDICT_YES);
        assert_int_equal(
            second_answer(kind, plain(OUTCOME_NOT_MINE)), rows[i].not_mine);
    }
}

static void votes_of_adopt(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"n", 1, "", VERDICT_NO},
        {"f", 1, "", VERDICT_FAULT},
        {"d", 1, "", VERDICT_FAULT}, /* nothing can have been changed */
        {"s", 1, "L0", VERDICT_FAULT},
        {"mm", 3, "L2", VERDICT_YES},
        {"mds", 3, "L2", VERDICT_FAULT},
        {"nn", 3, "L2", VERDICT_NO},
    };
    check_votes(ROUND_ADOPT, table, sizeof(table) / sizeof(table[0]));
}

static void votes_of_inspect(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"o", 1, "", VERDICT_YES}, /* occupied */
        {"e", 1, "", VERDICT_NO},  /* empty */
        {"m", 1, "", VERDICT_YES}, {"n", 1, "", VERDICT_NO},
        {"f", 1, "", VERDICT_FAULT}, {"d", 1, "", VERDICT_FAULT},
        {"s", 1, "L0", VERDICT_FAULT}, {"ee", 3, "L2", VERDICT_NO},
        {"oee", 3, "", VERDICT_NO}, {"oo", 3, "L2", VERDICT_YES},
        {"oef", 3, "", VERDICT_YES}, {"efs", 3, "L2", VERDICT_FAULT},
        {"of", 3, "L2", VERDICT_YES}, /* it can no longer be called free */
    };
    check_votes(ROUND_INSPECT, table, sizeof(table) / sizeof(table[0]));
}

static void other_verbs_answers_are_not_believed(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, plain(OUTCOME_SEEN));
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    assert_int_equal(r.fault, FAULT_NOT_REDIS);
    start(&r, ROUND_ADOPT, 1);
    say(&r, 0, plain(OUTCOME_FREE));
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
    start(&r, ROUND_INSPECT, 1);
    say(&r, 0, plain(OUTCOME_GRANTED));
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
}

static uint64_t adopted(int64_t left_ms)
{
    struct round r;
    start(&r, ROUND_ADOPT, 1);
    say(&r, 0, mine(T0, left_ms));
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    return r.deadline;
}

static void adopt_counts_what_is_left(void **state)
{
    (void)state;
    uint64_t most = lease_deadline(T0, 0x7fffffff, PPM);
    assert_int_equal(adopted(1000), T0 + LEASE);
    assert_int_equal(adopted(500), T0 + 493 * MS);
    assert_int_equal(adopted(0), 0);
    assert_int_equal(adopted(2), 0);
    assert_int_equal(adopted(LEFT_UNKNOWN), 0);
    assert_int_equal(adopted(LEFT_FOREVER), T0 + LEASE); /* the asker's ttl */
    assert_int_equal(adopted(INT64_MAX), most);
    assert_int_equal(adopted(0x7fffffff), most);
}

static void adopt_keeps_what_a_quorum_keeps(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_ADOPT, 3);
    say(&r, 2, mine(T0, 2000));
    say(&r, 0, mine(T0 + 9, 1000));
    assert_asks(&r, "L1");
    assert_int_equal(r.deadline, T0 + 9 + LEASE);
}

static void broken_connection_is_asked_again(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, cut(T0 + 7));
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    uint64_t wake = round_wake(&r);
    assert_in_range(wake, NOW + FIRST / 2, NOW + FIRST);
    round_tick(&r, wake - 1);
    assert_asks(&r, "");
    say(&r, 0, mine(T0, 1000)); /* of the broken one: stale */
    round_tick(&r, wake);
    assert_asks(&r, "S0");
    assert_int_equal(round_wake(&r), END);
    say(&r, 0, mine(T0 + 5 * MS, 1000));
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    /* The first try may be what the server's lease counts from. */
    assert_int_equal(r.deadline, T0 + 7 + LEASE);
}

static void try_that_never_left_keeps_the_first_send(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, cut(T0 + 7));
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, cut(0));
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, mine(T0 + 5 * MS, 1000));
    assert_int_equal(r.deadline, T0 + 7 + LEASE);
}

static void asked_three_times_at_most(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 2);
    for (int i = 0; i < 2; i++) {
        say(&r, 1, cut(T0));
        round_tick(&r, round_wake(&r));
        assert_asks(&r, "S1");
    }
    say(&r, 1, cut(T0));
    assert_int_equal(round_wake(&r), END);
    say(&r, 0, mine(T0, 1000));
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    assert_int_equal(r.fault, FAULT_UNREACHABLE);
}

static void only_a_broken_connection_is_asked_again(void **state)
{
    (void)state;
    struct round r;
    struct outcome silent = cut(T0);
    silent.fault = FAULT_TIMEOUT;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, silent);
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, refused(FAULT_UNREACHABLE));
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
}

static void no_time_to_ask_again(void **state)
{
    (void)state;
    struct round r;
    struct outcome lost = cut(T0);
    start(&r, ROUND_ADOPT, 1);
    round_outcome(&r, 0, &lost, END - FIRST / 2);
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
    assert_int_equal(r.fault, FAULT_UNREACHABLE);
}

static void doubt_of_an_extend_stays(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, cut(T0));
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, refused(FAULT_UNREACHABLE));
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    start(&r, ROUND_EXTEND, 1);
    say(&r, 0, cut(T0));
    round_tick(&r, END); /* while it waits to ask again */
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    assert_int_equal(r.fault, FAULT_UNREACHABLE);
}

static void waiting_to_ask_again_leaves_the_vote_open(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 3);
    say(&r, 0, cut(T0));
    say(&r, 1, plain(OUTCOME_NOT_MINE));
    say(&r, 2, mine(T0, 1000));
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, mine(T0, 1000));
    assert_int_equal(round_verdict(&r), VERDICT_YES);
}

static void left_before_a_byte_was_sent(void **state)
{
    (void)state;
    struct round r;
    struct effect effect;
    start(&r, ROUND_EXTEND, 1);
    round_tick(&r, END);
    round_withdrawn(&r, 0); /* not asked for yet */
    assert_true(round_next(&r, &effect));
    assert_int_equal(effect.kind, EFFECT_ABANDON);
    round_withdrawn(&r, 5);
    round_withdrawn(&r, 0);
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_FAULT);
    assert_int_equal(r.fault, FAULT_TIMEOUT);
}

static void stale_outcomes_are_ignored(void **state)
{
    (void)state;
    struct round r;
    begin(&r, ROUND_EXTEND, 3);
    say(&r, 0, mine(T0, 1000)); /* not asked yet */
    assert_asks(&r, "S0 S1 S2");
    say(&r, 0, mine(T0, 1000));
    say(&r, 0, plain(OUTCOME_NOT_MINE)); /* has answered */
    say(&r, 3, mine(T0, 1000));          /* no such server */
    assert_int_equal(round_verdict(&r), VERDICT_OPEN);
    say(&r, 1, plain(OUTCOME_NOT_MINE));
    say(&r, 2, plain(OUTCOME_NOT_MINE));
    say(&r, 1, mine(T0, 1000));
    round_tick(&r, END + 1);
    assert_asks(&r, "");
    assert_int_equal(round_verdict(&r), VERDICT_NO);
}

static void cancelled(void **state)
{
    (void)state;
    struct round r;
    struct effect effect;
    begin(&r, ROUND_EXTEND, 4);
    for (int i = 0; i < 3; i++)
        assert_true(round_next(&r, &effect));
    say(&r, 0, mine(T0, 1000));
    say(&r, 1, cut(T0)); /* is to be asked again */
    round_cancel(&r);
    assert_asks(&r, "L2");
    assert_int_equal(round_verdict(&r), VERDICT_CANCELLED);
    assert_true(round_wake(&r) == NEVER);
    start(&r, ROUND_EXTEND, 1);
    round_tick(&r, END);
    round_cancel(&r); /* while its last ask is to be taken */
    assert_asks(&r, "L0");
    assert_int_equal(round_verdict(&r), VERDICT_CANCELLED);
    start(&r, ROUND_EXTEND, 3);
    say(&r, 0, mine(T0, 1000));
    say(&r, 1, mine(T0, 1000));
    round_cancel(&r);
    assert_asks(&r, "L2");
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    round_cancel(&r);
    assert_int_equal(round_verdict(&r), VERDICT_YES);
}

static void worst_fault_of_those_who_failed(void **state)
{
    (void)state;
    struct round r;
    start(&r, ROUND_EXTEND, 3);
    say(&r, 0, cut(T0));
    round_tick(&r, round_wake(&r));
    assert_asks(&r, "S0");
    say(&r, 0, mine(T0, 1000)); /* mended: no longer a fault */
    say(&r, 1, refused(FAULT_RETRY));
    round_tick(&r, END);
    drain(&r, (char[WORDS_MAX]){0});
    assert_int_equal(r.fault, fault_worse(FAULT_RETRY, FAULT_TIMEOUT));
    start(&r, ROUND_EXTEND, 2);
    say(&r, 0, refused(FAULT_DENIED));
    say(&r, 1, refused(FAULT_RETRY));
    assert_int_equal(r.fault, FAULT_DENIED);
}

static void near_the_end_of_time(void **state)
{
    (void)state;
    struct round r;
    struct ballot ballot;
    struct round_terms terms = {ROUND_EXTEND, 1, &ballot, 1000, PPM, NEVER};
    struct outcome lost = cut(NEVER - 2), yes = mine(NEVER - 1, 1000);
    backoff_init(&r.backoff, FIRST, FIRST, 3);
    round_start(&r, &terms, NEVER - 2);
    assert_asks(&r, "S0");
    assert_true(round_wake(&r) == NEVER);
    round_outcome(&r, 0, &lost, NEVER - 1); /* no time to ask again */
    assert_int_equal(round_verdict(&r), VERDICT_UNKNOWN);
    round_start(&r, &terms, NEVER - 2);
    assert_asks(&r, "S0");
    round_outcome(&r, 0, &yes, NEVER - 1);
    assert_int_equal(round_verdict(&r), VERDICT_YES);
    assert_true(r.deadline == NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_all_at_once),
        cmocka_unit_test(extend_gives_the_deadline),
        cmocka_unit_test(quorum_of_mine_decides),
        cmocka_unit_test(majority_of_not_mine_decides),
        cmocka_unit_test(votes_of_extend),
        cmocka_unit_test(not_mine_may_be_its_own_doing),
        cmocka_unit_test(votes_of_adopt),
        cmocka_unit_test(votes_of_tell),
        cmocka_unit_test(votes_of_inspect),
        cmocka_unit_test(other_verbs_answers_are_not_believed),
        cmocka_unit_test(adopt_counts_what_is_left),
        cmocka_unit_test(adopt_keeps_what_a_quorum_keeps),
        cmocka_unit_test(broken_connection_is_asked_again),
        cmocka_unit_test(try_that_never_left_keeps_the_first_send),
        cmocka_unit_test(asked_three_times_at_most),
        cmocka_unit_test(only_a_broken_connection_is_asked_again),
        cmocka_unit_test(no_time_to_ask_again),
        cmocka_unit_test(doubt_of_an_extend_stays),
        cmocka_unit_test(waiting_to_ask_again_leaves_the_vote_open),
        cmocka_unit_test(left_before_a_byte_was_sent),
        cmocka_unit_test(stale_outcomes_are_ignored),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(worst_fault_of_those_who_failed),
        cmocka_unit_test(near_the_end_of_time),
    };
    return cmocka_run_group_tests_name("round", tests, NULL, NULL);
}
