/* SPDX-License-Identifier: MIT */
/*
 * A vote, driven by hand: an acquire counts as granted only when its conditions
 * are met, such as the fencing token, and other verbs are rounds.
 */
#include "support/test.h"

#include "core/vote.h"
#include "unit/core_rig.h"

static struct vote vote;
static struct effect last; /* what vote_next() has said */
static struct ballot ballots[3 * VOTE_BALLOTS];

static void acquire(bool fenced)
{
    struct acquire_terms terms = {.servers = 3,
        .ballots = ballots,
        .ttl_ms = 1000,
        .drift_ppm = 10000,
        .answer_timeout_ns = 50 * MS,
        .wait_until = T0 + NS_PER_S,
        .end = T0 + NS_PER_S};
    vote = (struct vote){.ballots = ballots};
    memset(ballots, 0, sizeof(ballots));
    vote_acquire(&vote, &terms, fenced ? 1U << CONDITION_FENCE : 0, 10 * MS,
        80 * MS, 5, T0);
}

static void round_of(enum round_kind kind)
{
    struct round_terms terms = {.kind = kind,
        .servers = 3,
        .ballots = ballots,
        .ttl_ms = 1000,
        .drift_ppm = 10000,
        .end = T0 + NS_PER_S};
    vote = (struct vote){.ballots = ballots};
    vote_round(&vote, &terms, 5, T0);
}

static const char *asks(void)
{
    static char words[WORDS_MAX];
    words[0] = '\0';
    while (vote_next(&vote, &last))
        add_ask(words, &last);
    return words;
}

/* What the verdict calls for; STILL_OPEN: there is none. */
#define STILL_OPEN (-1)
static int step(uint64_t now)
{
    assert_false(vote_next(&vote, &last));
    return last.verdict == VERDICT_OPEN
               ? STILL_OPEN
               : (int)vote_step(&vote, last.verdict, now);
}

static void say(unsigned server, struct outcome outcome)
{
    vote_outcome(&vote, server, &outcome, T0 + MS);
}

static struct outcome numbered(uint64_t fence)
{
    struct outcome outcome = granted(T0);
    outcome.fence = fence;
    return outcome;
}

static struct outcome raised(uint64_t fence)
{
    struct outcome outcome = mine(T0, LEFT_UNKNOWN);
    outcome.fence = fence;
    return outcome;
}

/* Two servers grant with these numbers, and the fencing token comes next. */
static void granted_by(unsigned a, uint64_t one, unsigned b, uint64_t other)
{
    say(a, numbered(one));
    say(b, numbered(other));
    asks();
    assert_int_equal(step(T0 + MS), VOTE_GOES_ON);
}

static void without_a_fence(void **state)
{
    (void)state;
    acquire(false);
    assert_string_equal(asks(), "T S0 S1 S2");
    assert_int_equal(step(T0), STILL_OPEN);
    say(0, granted(T0));
    say(1, granted(T0));
    assert_string_equal(asks(), "L2");
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
}

/* BEGIN has drawn its number itself: nothing has to be raised. */
static void work_begins_with_its_number(void **state)
{
    (void)state;
    acquire(true);
    vote.acquire.terms.servers = 1;
    struct acquire_terms terms = vote.acquire.terms;
    vote_acquire(&vote, &terms, 1U << CONDITION_BEGIN, 10 * MS, 80 * MS, 5, T0);
    assert_string_equal(asks(), "T S0");
    say(0, numbered(8));
    assert_string_equal(asks(), "");
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
    assert_true(last.fence == 8);
}

/* The two that granted drew the same number: nothing has to be raised, and the
 * third is asked no more. */
static void equal_numbers(void **state)
{
    (void)state;
    acquire(true);
    asks();
    granted_by(0, 8, 1, 8);
    assert_string_equal(asks(), "");
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
    assert_true(vote.fence.value == 8);
}

static void the_lower_one_is_raised(void **state)
{
    (void)state;
    acquire(true);
    asks();
    granted_by(0, 8, 2, 5);
    assert_string_equal(asks(), "S1 S2");
    assert_int_equal(step(T0 + MS), STILL_OPEN);
    say(2, raised(8));
    asks();
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
    assert_true(vote.fence.value == 8);
}

/* No quorum gets the number: the grant is undone by the driver, and another
 * round follows, with another token. */
static void it_cannot_be_raised(void **state)
{
    (void)state;
    acquire(true);
    asks();
    granted_by(0, 8, 2, 5);
    asks();
    say(1, plain(OUTCOME_NOT_MINE));
    say(2, plain(OUTCOME_NOT_MINE));
    asks();
    assert_int_equal(step(T0 + MS), VOTE_UNDO);
    vote_again(&vote, T0 + MS);
    assert_false(vote.raising_fence);
    assert_int_equal(step(T0 + MS), STILL_OPEN);
    uint64_t at = last.wake;
    assert_true(at > T0 + MS && at < T0 + NS_PER_S);
    vote_tick(&vote, at);
    assert_string_equal(asks(), "T S0 S1 S2");
    for (unsigned i = 0; i < 3; i++) /* of the last round */
        assert_true(ballots[i].fence == 0);
}

/* A cancelled call ends, whichever machine is running. */
static void cancelled(void **state)
{
    (void)state;
    acquire(false);
    asks();
    vote_cancel(&vote);
    assert_string_equal(asks(), "U0 U1 U2");
    assert_int_equal(step(T0), VOTE_OVER);
    acquire(true);
    asks();
    granted_by(0, 8, 1, 5);
    asks();
    vote_cancel(&vote);
    asks();
    assert_int_equal(step(T0 + MS), VOTE_UNDO);
    round_of(ROUND_EXTEND);
    asks();
    vote_cancel(&vote);
    assert_string_equal(asks(), "L0 L1 L2");
    assert_int_equal(step(T0), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_CANCELLED);
}

static void a_round(void **state)
{
    (void)state;
    round_of(ROUND_RELEASE);
    assert_string_equal(asks(), "S0 S1 S2");
    say(0, plain(OUTCOME_MINE));
    assert_int_equal(step(T0 + MS), STILL_OPEN);
    say(1, plain(OUTCOME_MINE));
    assert_string_equal(asks(), "U2");
    vote_withdrawn(&vote, 2);
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
}

/* In line, which grants the lock at once. */
static void granted_in_line(unsigned wanted)
{
    static const struct messages none = {MESSAGES_NONE, 0};
    static struct line line;
    struct line_terms in_line = {.ttl_ms = 1000,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .timeout_ns = NS_PER_S,
        .answer_timeout_ns = 50 * MS,
        .wait_until = T0 + NS_PER_S,
        .end = T0 + NS_PER_S,
        .messages = &none};
    acquire(false);
    struct acquire_terms terms = vote.acquire.terms;
    terms.servers = 1;
    vote_acquire(&vote, &terms, wanted, 10 * MS, 80 * MS, 5, T0);
    line = (struct line){.has_waited = false};
    vote_line_up(&vote, &line, &in_line, 5, T0);
    assert_string_equal(asks(), "T S0");
    say(0, numbered(0));
    assert_string_equal(asks(), "");
}

/* What each condition does with a grant by the line, and what its "no" means.
 */
static void conditions_after_the_line(void **state)
{
    (void)state;
    static const struct {
        unsigned wanted;
        enum verb_kind verb;
        bool held;                 /* verb.may_hold_token */
        enum outcome_kind yes, no; /* answers */
        uint64_t number;
        int after_no;
    } rows[] = {
        {1U << CONDITION_BEGIN, VERB_BEGIN, true, OUTCOME_GRANTED, OUTCOME_BUSY,
            8, STILL_OPEN},
        {1U << CONDITION_BEGIN, VERB_BEGIN, true, OUTCOME_GRANTED,
            OUTCOME_RECORDED, 8, VOTE_OVER},
        {1U << CONDITION_FENCE, VERB_RAISE, false, OUTCOME_MINE,
            OUTCOME_NOT_MINE, 8, VOTE_UNDO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int yes = 0; yes < 2; yes++) {
            struct verb verb = {.may_hold_token = false};
            struct outcome outcome = plain(yes ? rows[i].yes : rows[i].no);
            granted_in_line(rows[i].wanted);
            assert_int_equal(step(T0 + MS), VOTE_GOES_ON);
            assert_string_equal(asks(), "S0"); /* with the same token */
            vote_complete(&vote, &verb);
            assert_int_equal(verb.kind, rows[i].verb);
            assert_int_equal(verb.may_hold_token, rows[i].held);
            assert_int_equal(step(T0 + MS), STILL_OPEN);
            outcome.sent_at = T0;
            outcome.fence = rows[i].number;
            say(0, outcome);
            assert_string_equal(asks(), "");
            assert_int_equal(step(T0 + MS), yes ? VOTE_OVER : rows[i].after_no);
            if (yes)
                assert_int_equal(last.verdict, VERDICT_YES);
            if (yes)
                assert_int_equal(last.fence, rows[i].number);
        }
    }
    granted_in_line(0);
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_YES);
}

/* Raising a counter needs no undoing, and a server that does not exist says
 * nothing. */
static void what_changes_nothing(void **state)
{
    (void)state;
    acquire(true);
    asks();
    say(3, numbered(9));
    granted_by(0, 8, 2, 5);
    assert_string_equal(asks(), "S1 S2");
    say(3, raised(9));
    vote_withdrawn(&vote, 2);
    assert_int_equal(step(T0 + MS), STILL_OPEN);
    say(2, raised(8));
    asks();
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_true(vote.fence.value == 8);
}

static void the_worst_fault(void **state)
{
    (void)state;
    round_of(ROUND_EXTEND);
    asks();
    for (unsigned i = 0; i < 3; i++)
        say(i, refused(FAULT_REFUSING));
    asks();
    assert_int_equal(step(T0 + MS), VOTE_OVER);
    assert_int_equal(last.verdict, VERDICT_FAULT);
    assert_int_equal(last.fault, FAULT_REFUSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_fence),
        cmocka_unit_test(work_begins_with_its_number),
        cmocka_unit_test(equal_numbers),
        cmocka_unit_test(the_lower_one_is_raised),
        cmocka_unit_test(it_cannot_be_raised),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(a_round),
        cmocka_unit_test(conditions_after_the_line),
        cmocka_unit_test(what_changes_nothing),
        cmocka_unit_test(the_worst_fault),
    };
    return cmocka_run_group_tests_name("vote", tests, NULL, NULL);
}
