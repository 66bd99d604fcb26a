/* SPDX-License-Identifier: MIT */
/* One round of acquire: every verdict, decided as early as the vote is, and
 * nothing that may stand left unnamed. */
#include "support/test.h"

#include "unit/acquire_rig.h"

static void asks_token_then_all(void **state)
{
    (void)state;
    struct acquire a;
    begin(&a, 1, T0, T0, T0 + NS_PER_S);
    assert_asks(&a, "T S0");
    begin(&a, 3, T0, T0, T0 + NS_PER_S);
    assert_asks(&a, "T S0 S1 S2");
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_int_equal(acquire_wake(&a), T0 + BUDGET);
    assert_false(a.want_left);
}

static void one_grant(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, granted(T0 + 5), T0 + MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    assert_int_equal(a.deadline, T0 + 5 + LEASE);
    assert_asks(&a, "");
    assert_true(acquire_wake(&a) == NEVER);
}

static void one_busy(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, busy(42), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    assert_int_equal(a.left_ms, 42);
}

static void one_refused(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, refused(FAULT_DENIED), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    assert_int_equal(a.fault, FAULT_DENIED);
}

static void one_cut(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, cut(T0), T0 + MS);
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    assert_int_equal(a.fault, FAULT_UNREACHABLE);
}

static void one_silent(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    acquire_tick(&a, T0 + BUDGET - 1);
    assert_asks(&a, "");
    acquire_tick(&a, T0 + BUDGET);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    assert_int_equal(a.fault, FAULT_TIMEOUT);
}

static void one_silent_but_withdrawn(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    start_try(&a, 1);
    acquire_tick(&a, T0 + BUDGET);
    acquire_withdrawn(&a, 0); /* too early: not asked for */
    assert_true(acquire_next(&a, &effect));
    assert_int_equal(effect.kind, EFFECT_UNDO);
    acquire_withdrawn(&a, 7);
    acquire_withdrawn(&a, 0);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    assert_int_equal(a.fault, FAULT_TIMEOUT);
}

static void answer_to_another_question(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, plain(OUTCOME_MINE), T0 + MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    assert_int_equal(a.fault, FAULT_NOT_REDIS);
}

static void quorum_of_grants_decides(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        struct acquire a;
        start_try(&a, n);
        unsigned q = quorum_of(n);
        char leaves[WORDS_MAX] = "";
        for (unsigned i = 0; i < q; i++) {
            assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
            assert_asks(&a, "");
            /* The earliest send counts, whoever answers first. */
            say(&a, i, granted(T0 + 900 - i), T0 + MS);
        }
        for (unsigned i = q; i < n; i++)
            add_ask(
                leaves, &(struct effect){.kind = EFFECT_ABANDON, .server = i});
        assert_asks(&a, leaves);
        assert_int_equal(acquire_verdict(&a), VERDICT_YES);
        assert_int_equal(a.deadline, T0 + 900 - (q - 1) + LEASE);
    }
}

static void quorum_without_the_others(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 5);
    say(&a, 0, busy(LEFT_UNKNOWN), T0 + MS);
    say(&a, 1, cut(T0), T0 + MS);
    say(&a, 2, granted(T0), T0 + MS);
    say(&a, 4, granted(T0), T0 + MS);
    assert_asks(&a, "");
    say(&a, 3, granted(T0), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
}

static void majority_of_busy_decides(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        struct acquire a;
        start_try(&a, n);
        unsigned enough = n - quorum_of(n) + 1;
        char undos[WORDS_MAX] = "";
        for (unsigned i = 0; i < enough; i++) {
            assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
            say(&a, i, busy(LEFT_UNKNOWN), T0 + MS);
        }
        for (unsigned i = enough; i < n; i++)
            add_ask(undos, &(struct effect){.kind = EFFECT_UNDO, .server = i});
        assert_asks(&a, undos);
        assert_int_equal(acquire_verdict(&a), VERDICT_NO);
    }
}

struct vote {
    const char *said; /* as play() reads it */
    unsigned servers;
    const char *asks;
    enum verdict verdict;
};

/* A whole row, so that a failure names it. */
static void write_vote(
    char *line, const struct vote *vote, const char *asks, enum verdict verdict)
{
    snprintf(line, 2 * WORDS_MAX, "%s of %u: [%s] verdict %d", vote->said,
        vote->servers, asks, (int)verdict);
}

static void votes(void **state)
{
    (void)state;
    static const struct vote table[] = {
        {"gg", 2, "", VERDICT_YES},
        {"gb", 2, "U0", VERDICT_NO},
        {"gf", 2, "U0", VERDICT_FAULT},
        {"gu", 2, "U0 U1", VERDICT_UNKNOWN},
        {"gs", 2, "U0 U1", VERDICT_UNKNOWN},
        {"b", 2, "U1", VERDICT_NO},
        {"f", 2, "U1", VERDICT_FAULT},
        {"u", 2, "U0 U1", VERDICT_UNKNOWN},
        {"ff", 3, "U2", VERDICT_FAULT},
        {"bf", 3, "U2", VERDICT_NO},
        {"gbf", 3, "U0", VERDICT_NO},
        {"gff", 3, "U0", VERDICT_FAULT},
        {"guu", 3, "U0 U1 U2", VERDICT_UNKNOWN},
        {"guf", 3, "U0 U1", VERDICT_UNKNOWN},
        {"bs", 3, "U1 U2", VERDICT_UNKNOWN},
        {"gbs", 3, "U0 U2", VERDICT_UNKNOWN},
        {"s", 3, "U0 U1 U2", VERDICT_UNKNOWN},
        {"ggb", 4, "", VERDICT_OPEN},
        {"ggbb", 4, "U0 U1", VERDICT_NO},
        {"ggff", 4, "U0 U1", VERDICT_FAULT},
        {"ff", 4, "U2 U3", VERDICT_FAULT},
        {"bf", 4, "U2 U3", VERDICT_NO},
        {"gggf", 4, "L3", VERDICT_YES},
        {"ffb", 5, "U3 U4", VERDICT_NO},
        {"fff", 5, "U3 U4", VERDICT_FAULT},
        {"ggfbs", 5, "U0 U1 U4", VERDICT_UNKNOWN},
        {"gfbs", 5, "U0 U3 U4", VERDICT_UNKNOWN},
        {"gfbb", 5, "U0 U4", VERDICT_NO},
        {"ggffs", 5, "U0 U1 U4", VERDICT_UNKNOWN},
        {"gbbb", 5, "U0 U4", VERDICT_NO},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct acquire a;
        start_try(&a, table[i].servers);
        play(&a, table[i].said, T0);
        char asks[WORDS_MAX], got[2 * WORDS_MAX], expected[2 * WORDS_MAX];
        drain(&a, asks);
        write_vote(got, &table[i], asks, acquire_verdict(&a));
        write_vote(expected, &table[i], table[i].asks, table[i].verdict);
        assert_string_equal(got, expected);
    }
}

static void withdrawn_grants_no_quorum(void **state)
{
    (void)state;
    struct acquire a;
    struct effect effect;
    start_try(&a, 3);
    say(&a, 0, granted(T0), T0 + MS);
    acquire_tick(&a, T0 + BUDGET);
    while (acquire_next(&a, &effect)) /* the grant cannot be withdrawn */
        acquire_withdrawn(&a, effect.server);
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
}

static void withdrawn_out_of_turn(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 3);
    play(&a, "u", T0);
    acquire_withdrawn(&a, 0); /* nobody asked for that */
    say(&a, 1, refused(FAULT_RETRY), T0);
    assert_asks(&a, "U0 U2");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void worst_fault_is_told(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 3);
    say(&a, 0, refused(FAULT_DENIED), T0 + MS);
    say(&a, 2, refused(FAULT_RETRY), T0 + MS);
    assert_asks(&a, "U1");
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    assert_int_equal(a.fault, FAULT_DENIED);
}

static void grant_after_its_deadline(void **state)
{
    (void)state;
    struct acquire a;
    struct outcome grant = granted(T0);
    start_try(&a, 1);
    acquire_outcome(&a, 0, &grant, T0 + LEASE);
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_EXPIRED);
    start_try(&a, 1);
    acquire_outcome(&a, 0, &grant, T0 + LEASE - 1);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    start_try(&a, 3);
    say(&a, 1, granted(T0), T0 + MS);
    grant.sent_at = T0 + 50 * MS;
    acquire_outcome(&a, 2, &grant, T0 + LEASE);
    assert_asks(&a, "U0 U1 U2");
    assert_int_equal(acquire_verdict(&a), VERDICT_EXPIRED);
}

/* Memory that was set to zero is no grant. */
static void outcome_that_was_never_decided(void **state)
{
    (void)state;
    struct acquire a;
    struct outcome none = {0};
    start_try(&a, 1);
    acquire_outcome(&a, 0, &none, T0 + MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void time_never_runs_back(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 3);
    struct outcome grant = granted(T0);
    acquire_outcome(&a, 0, &grant, T0 + LEASE);
    acquire_outcome(&a, 1, &grant, T0);
    assert_asks(&a, "U0 U1 U2");
    assert_int_equal(acquire_verdict(&a), VERDICT_EXPIRED);
}

static void round_ends_with_the_call(void **state)
{
    (void)state;
    struct acquire a;
    begin(&a, 1, T0, T0 + 30 * MS, T0 + 30 * MS);
    assert_int_equal(acquire_wake(&a), T0 + 30 * MS);
    assert_asks(&a, "T S0");
    acquire_tick(&a, T0 + 30 * MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

static void near_the_end_of_time(void **state)
{
    (void)state;
    struct acquire a;
    struct outcome grant = granted(NEVER - 50);
    begin(&a, 1, NEVER - 50, NEVER - 50, NEVER);
    assert_asks(&a, "T S0");
    assert_true(acquire_wake(&a) == NEVER);
    acquire_outcome(&a, 0, &grant, NEVER - 40);
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    assert_true(a.deadline == NEVER);
    begin(&a, 2, NEVER - 50, NEVER - 50, NEVER);
    assert_asks(&a, "T S0 S1");
    acquire_tick(&a, NEVER);
    assert_asks(&a, "U0 U1");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_token_then_all),
        cmocka_unit_test(one_grant),
        cmocka_unit_test(one_busy),
        cmocka_unit_test(one_refused),
        cmocka_unit_test(one_cut),
        cmocka_unit_test(one_silent),
        cmocka_unit_test(one_silent_but_withdrawn),
        cmocka_unit_test(answer_to_another_question),
        cmocka_unit_test(quorum_of_grants_decides),
        cmocka_unit_test(quorum_without_the_others),
        cmocka_unit_test(majority_of_busy_decides),
        cmocka_unit_test(votes),
        cmocka_unit_test(withdrawn_grants_no_quorum),
        cmocka_unit_test(withdrawn_out_of_turn),
        cmocka_unit_test(worst_fault_is_told),
        cmocka_unit_test(grant_after_its_deadline),
        cmocka_unit_test(outcome_that_was_never_decided),
        cmocka_unit_test(time_never_runs_back),
        cmocka_unit_test(round_ends_with_the_call),
        cmocka_unit_test(near_the_end_of_time),
    };
    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
