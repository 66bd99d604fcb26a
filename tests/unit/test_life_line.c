/* SPDX-License-Identifier: MIT */
/*
 * The life of a lock that waits in line: when the line is offered, and how the
 * call goes on there and without it. For the wait itself see test_line.c.
 */
#include "support/test.h"

#include "unit/life_line_rig.h"

static void offered_once_a_round(void **state)
{
    static const struct scene scenes[] = {
        {"free: no line", "acquire g", "T Sa =ok"},
        {"taken: with the token that was not set", "acquire w", "T Sa ? Sj"},
        {"declined: polls", "acquire w", "T Sa ?", .polls = true},
        {"... and is asked after each round", "acquire w wake w wake w",
            "T Sa ? Sa ? Sa ?", .polls = true},
        {"... and no more often", "acquire w told none wake", "T Sa ? Sa",
            .polls = true},
        {"a fault is no reason", "acquire z", "T Sa"},
        {"at once", "lineup", "T Sj"},
        {"... without randomness", "lineup", "T =fault", .no_token = true},
        {"... and in line later", "lineup w wake x", "T Sj Ss T Sj"},
    };
    (void)state;
    PLAY(scenes);
}

static void without_the_line(void **state)
{
    static const struct scene scenes[] = {
        {"it cannot be used: polls, and it is offered no more",
            "acquire w D w wake w", "T Sa ? Sj T Sa Sa"},
        {"... for this call", "acquire w D g release m acquire w",
            "T Sa ? Sj T Sa =ok Sr =ok T Sa ? Sj"},
        {"... with its token in line", "acquire w w wake D w",
            "T Sa ? Sj Ss U T Sa"},
        {"a key without an end: polls once", "acquire w i w w",
            "T Sa ? Sj U T Sa ? Sj"},
        {"a doubt stays until the lock is busy", "acquire w E cancel",
            "T Sa ? Sj U T Sa U =cancelled"},
    };
    (void)state;
    PLAY(scenes);
}

/* What follows a JOIN that may have been applied, once polling gets no answer
 * either. */
static void a_doubt_outlives_the_line(void **state)
{
    static const struct {
        const char *steps;
        enum life_result result;
    } rows[] = {
        {"acquire w E @1990 z", LIFE_UNKNOWN},
        {"lineup E @1990 z", LIFE_UNKNOWN},
        {"lineup D @1990 z", LIFE_FAULT},
        {"acquire w E @1990 w", LIFE_BUSY},
        {"acquire w E w @2000", LIFE_FAULT}, /* the key stood for 600 ms */
        /* The last round is cut off by the end: it may have been granted. */
        {"acquire w @1500 D", LIFE_UNKNOWN},
        {"acquire w @1500 E", LIFE_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene s = {.steps = rows[i].steps};
        play(&s);
        for (int n = 0; l.running && n < 100; n++)
            step("wake");
        if (l.result != rows[i].result)
            print_error("%s: %s\n", rows[i].steps, trace);
        assert_int_equal(l.result, rows[i].result);
    }
}

static void granted_in_line(void **state)
{
    static const struct scene scenes[] = {
        {"by the JOIN", "acquire w g", "T Sa ? Sj =ok"},
        {"by a message", "acquire w w told", "T Sa ? Sj =ok"},
        {"... with a STAY under way", "acquire w w wake told",
            "T Sa ? Sj Ss L =ok"},
        {"by a STAY", "acquire w w wake g", "T Sa ? Sj Ss =ok"},
        {"by a message that is older than a lease: by a STAY",
            "acquire w w @1078 told g", "T Sa ? Sj Ss =ok"},
        {"too late: undone", "acquire w w wake @1300 g", "T Sa ? Sj Ss U T Sj"},
    };
    (void)state;
    PLAY(scenes);
    struct scene s = {.steps = "acquire w w @5 wake w @700 told"};
    play(&s);
    assert_true(l.lease.deadline == sent_at[TRACK_CALL] + JOINED);
    assert_true(l.lease.granted_at == T0 + 700 * MS);
}

static void given_up_in_line(void **state)
{
    static const struct scene scenes[] = {
        {"JOIN unanswered", "acquire w cancel", "T Sa ? Sj U =cancelled"},
        {"in line", "acquire w w cancel", "T Sa ? Sj U =cancelled"},
        {"STAY unanswered", "acquire w w wake cancel",
            "T Sa ? Sj Ss U =cancelled"},
        {"paused", "acquire w z cancel", "T Sa ? Sj =cancelled"},
        {"freed, JOIN unanswered", "acquire w discard",
            "T Sa ? Sj U =cancelled"},
        {"freed in line", "acquire w w discard", "T Sa ? Sj U =cancelled"},
        {"freed, STAY unanswered", "acquire w w wake discard",
            "T Sa ? Sj Ss U =cancelled"},
        {"freed while paused", "acquire w z discard", "T Sa ? Sj =cancelled"},
        {"not offered after a cancellation", "acquire cancel w",
            "T Sa U =cancelled"},
        {"the wait is over, woken too late to look once more",
            "acquire w w @2000 wake", "T Sa ? Sj U =unknown"},
        {"... before an answer", "acquire w @2000 wake",
            "T Sa ? Sj U =unknown"},
        {"it joined nowhere", "lineup @2000 wake", "T Sj U =fault",
            .unsent = true},
        {"... or it may have", "lineup @2000 wake", "T Sj U =unknown"},
        {"a message after the end", "acquire w w cancel told none",
            "T Sa ? Sj U =cancelled"},
        {"messages cease", "acquire w w none w", "T Sa ? Sj U T Sj"},
    };
    (void)state;
    PLAY(scenes);
}

/* With wait_replicas a lease that the line has granted is extended before it is
 * promised. It lasts for as long as the line said all the same. */
static void what_is_extended_first(void **state)
{
    (void)state;
    const struct scene scene = {.name = "wait_replicas"};
    begin(&scene);
    l.terms.copies_ns = 50 * MS;
    step("lineup");
    step("w");
    assert_true(life_lasts_until(&l) == 0);
    now += 5 * MS;
    trace[0] = '\0';
    step("told");
    assert_string_equal(trace, "Se");
    assert_true(line.deadline == T0 + JOINED);
    assert_true(life_lasts_until(&l) == line.deadline);
    trace[0] = '\0';
    step("m");
    assert_string_equal(trace, "=ok");
    assert_true(l.lease.promised != line.deadline);
    assert_true(life_lasts_until(&l) == l.lease.promised);
}

/* It is extended too late, when its token is gone. That does not say that
 * another client holds the lock. */
static void what_is_extended_too_late(void **state)
{
    (void)state;
    const struct scene scene = {.name = "wait_replicas"};
    begin(&scene);
    l.terms.copies_ns = 50 * MS;
    step("lineup");
    step("w");
    step("told");
    step("@1990");
    trace[0] = '\0';
    step("x");
    assert_string_equal(trace, "=lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_extended_first),
        cmocka_unit_test(what_is_extended_too_late),
        cmocka_unit_test(offered_once_a_round),
        cmocka_unit_test(without_the_line),
        cmocka_unit_test(a_doubt_outlives_the_line),
        cmocka_unit_test(granted_in_line),
        cmocka_unit_test(given_up_in_line),
    };
    return cmocka_run_group_tests_name("life in line", tests, NULL, NULL);
}
