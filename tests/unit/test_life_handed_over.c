/* SPDX-License-Identifier: MIT */
/*
 * What a lock that was handed over does later: where it is released, how it
 * gets its fencing token, and how often it is not handed on.
 */
#include "support/test.h"

#include "unit/life_line_rig.h"

/* It is released where its token may be: the answers of the line do not show
 * that it is not there. */
static void released_at_its_server(void **state)
{
    static const struct scene scenes[] = {
        {"after a busy STAY", "acquire w w wake w told release m",
            "T Sa ? Sj Ss =ok Sr =ok"},
        {"after one that failed", "acquire w w wake z told release m",
            "T Sa ? Sj Ss =ok Sr =ok"},
        {"with one under way", "acquire w w wake told release m",
            "T Sa ? Sj Ss L =ok Sr =ok"},
        {"in its second place", "acquire w w wake x w told release m",
            "T Sa ? Sj Ss T Sj =ok Sr =ok"},
        {"freed", "acquire w w wake z told part", "T Sa ? Sj Ss =ok C"},
        {"extended", "acquire w w wake z told extend m",
            "T Sa ? Sj Ss =ok Se =ok"},
        {"renewed", "acquire w w wake z told rwake rm",
            "T Sa ? Sj Ss =ok Se renewed", .renewed = true},
        {"kept for the minimum hold", "acquire w w told release m",
            "T Sa ? Sj =ok Sc =ok", .min_hold_ms = 500},
        {"another one is adopted: it is removed",
            "acquire w w told extend x adopt m",
            "T Sa ? Sj =ok Se =lost C T Si A M =ok"},
    };
    (void)state;
    PLAY(scenes);
}

/* A lock that was handed over has no number yet. */
static void its_fencing_token_is_drawn(void **state)
{
    static const struct scene scenes[] = {
        {"after a message", "acquire w w told m", "T Sa ? Sj Sf =ok",
            .fenced = true},
        {"after a JOIN that granted", "acquire w g m", "T Sa ? Sj Sf =ok",
            .fenced = true},
        {"in line at once, after a call that drew one",
            "acquire g release m lineup g m", "T Sa =ok Sr =ok T Sj Sf =ok",
            .fenced = true},
        {"the lock is gone: once more", "acquire w w told x wake",
            "T Sa ? Sj Sf L C T Sa", .fenced = true},
        {"... and in line again", "acquire w w told x wake w",
            "T Sa ? Sj Sf L C T Sa ? Sj", .fenced = true},
        {"cancelled: undone", "acquire w w told cancel",
            "T Sa ? Sj Sf L L C =cancelled", .fenced = true},
    };
    (void)state;
    PLAY(scenes);
    for (int i = 0; i < 3; i++) {
        raised_to = 99;
        play(&scenes[i]);
        assert_int_equal(raised_to, 0); /* the next one */
        assert_int_equal(l.fence, 12);
    }
}

/* A wait in line is no long round: what is left of the call is used. */
static void a_long_wait_leaves_time_for_another_round(void **state)
{
    (void)state;
    struct scene s = {
        .steps = "acquire w w @1490 wake w @1500 told x", .fenced = true};
    play(&s);
    assert_true(l.running);
    step("wake");
    step("g");
    assert_int_equal(raised_to, 0);
    step("m");
    assert_int_equal(l.result, LIFE_OK);
}

/* ------------------------------------------------------------------- a gap */

/* How long a gap the release leaves after so long a hold, in ms. Whether it
 * says that somebody is probably behind. */
static uint32_t gap_left(
    const char *steps, bool fenced, uint64_t held, bool followed)
{
    struct scene s = {.steps = steps, .fenced = fenced};
    struct action action;
    play(&s);
    uint64_t at = l.lease.granted_at + held;
    lease_extend(&l.lease, at + NS_PER_S);
    assert_true(life_release(&l, 1, at));
    assert_true(life_next(&l, &action, at));
    assert_int_equal(action.kind, ACTION_SEND);
    assert_int_equal(action.verb.kind, VERB_RELEASE);
    assert_int_equal(action.verb.has_waiters_behind, followed);
    return action.verb.gap_ms;
}

/* One part in 75 of a long hold, and no more than a second. After a short one
 * the server decides. */
static void a_part_of_the_time_is_left_to_others(void **state)
{
    static const struct {
        uint64_t held_ms;
        uint32_t gap_ms;
    } rows[] = {{0, 0}, {500, 0}, {7499, 0}, {7500, 100}, {60000, 800},
        {75000, 1000}, {3600000, 1000}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(
            gap_left("acquire w w told", false, rows[i].held_ms * MS, true),
            rows[i].gap_ms);
}

/* However the lease began: the server knows whether somebody waits. */
static void every_release_may_leave_a_gap(void **state)
{
    static const struct {
        const char *steps;
        bool followed, fenced;
    } rows[] = {
        {"acquire g", false},
        {"acquire w g", false},
        {"lineup g", false},
        {"acquire w w told", true},
        {"acquire w w wake g", true},
        {"acquire w w wake x g", true},
        {"acquire w w told release m acquire g", false},
        {"acquire w w told extend m", true},
        {"acquire w w told extend x adopt m", false},
        {"acquire w w told m", true, .fenced = true},
        /* What was handed over was lost before it had its number. */
        {"acquire w w told x wake g m", false, .fenced = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(gap_left(rows[i].steps, rows[i].fenced, 15 * NS_PER_S,
                             rows[i].followed),
            200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_at_its_server),
        cmocka_unit_test(its_fencing_token_is_drawn),
        cmocka_unit_test(a_long_wait_leaves_time_for_another_round),
        cmocka_unit_test(a_part_of_the_time_is_left_to_others),
        cmocka_unit_test(every_release_may_leave_a_gap),
    };
    return cmocka_run_group_tests_name("life handed over", tests, NULL, NULL);
}
