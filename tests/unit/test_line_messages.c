/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: what a message means, by the state of the token and by the
 * connections over which it joined and hears; and what changes when messages
 * come or cease.
 */
#include "support/test.h"

#include "unit/line_rig.h"

struct scene {
    const char *name, *steps, *does;
};

static void play_all(int state, const struct scene *scenes, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        messages = (struct messages){(__typeof__(messages.state))state, 1};
        start(false, NEVER, NEVER);
        line_play(scenes[i].steps);
        wrong += !line_did(scenes[i].name, scenes[i].does);
    }
    assert_int_equal(wrong, 0);
}

#define PLAY(state, scenes)                                                    \
    play_all(state, scenes, sizeof(scenes) / sizeof(*(scenes)))

static void from_when_a_lease_counts(void **state)
{
    static const struct scene scenes[] = {
        {"from the JOIN", "w told", "T J =yes:J"},
        {"from an answered STAY", "w wake w told", "T J Y =yes:Y"},
        {"not from one without an answer", "w wake told", "T J Y L =yes:J"},
        {"nor from one that failed", "w wake z told", "T J Y =yes:J"},
        {"nor from one that was given up", "w wake silence told",
            "T J Y L =yes:J"},
        {"nor from the JOIN of an earlier token", "w wake x told w @500 told",
            "T J Y T J =yes:J"},
        {"the message came before the answer to JOIN", "told w", "T J =yes:J"},
        {"10 ms are left", "w @1077 told", "T J =yes:J"},
        {"less: from a STAY", "w @1078 told g", "T J Y =yes:Y"},
        {"... also if JOIN is answered then", "told @1078 w g", "T J Y =yes:Y"},
        {"... and if one is under way: from that one", "w wake @1100 told g",
            "T J Y =yes:Y"},
        {"... or from the next one", "w wake @1100 told w g", "T J Y Y =yes:Y"},
        {"... unless the lease has expired", "w @1078 told x", "T J Y T J"},
        {"less after an answer: undone, and in line anew", "@1078 g",
            "T J U T J"},
        {"... and to STAY", "w wake @1300 g", "T J Y U T J"},
    };
    (void)state;
    PLAY(MESSAGES_UP, scenes);
}

static void tokens_that_it_is_not_for(void **state)
{
    static const struct scene scenes[] = {
        {"none is in line: the JOIN was refused", "z told", "T J"},
        {"... or is in doubt, and undone", "u told", "T J U"},
        {"... or was given up", "silence told", "T J U"},
        {"the wait is over", "cancel told", "T J U =cancelled"},
    };
    (void)state;
    PLAY(MESSAGES_UP, scenes);
}

/* Over other connections than those of its JOIN a message may be that of a
 * server that went back in time: the answer to a STAY decides. */
static void over_other_connections(void **state)
{
    static const struct scene scenes[] = {
        {"to the server", "w @5 conn2 told g", "T J Y =yes:Y"},
        {"... it was not granted", "w conn2 told w told", "T J Y Y"},
        {"none to the server", "w conn0 told", "T J Y"},
        {"a STAY was answered over another one", "w conn2 wake w told",
            "T J Y Y"},
        {"... even if the present one has the number of the first",
            "w conn2 wake w conn1 wake w told", "T J Y Y Y"},
        {"another subscription", "w @5 up w told g", "T J Y Y =yes:Y"},
        {"the one that is coming", "w coming told", "T J =yes:J"},
        {"with a STAY under way: another one follows", "w wake conn2 told w g",
            "T J Y Y =yes:Y"},
        {"... unless that one grants", "w wake conn2 told g", "T J Y =yes:Y"},
        {"... and also if that one fails", "w wake conn2 told z wake",
            "T J Y Y"},
        {"a token that joined over it", "w conn2 wake x w told",
            "T J Y T J =yes:J"},
        {"... after one whose answers had moved",
            "w conn2 wake w wake x w told", "T J Y Y T J =yes:J"},
        {"an answer before the connection was lost", "w wake w conn2 told",
            "T J Y Y"},
    };
    (void)state;
    PLAY(MESSAGES_UP, scenes);
}

static void messages_begin(void **state)
{
    static const struct scene coming[] = {
        {"STAY at once", "w up", "T J Y"},
        {"... when the JOIN is answered", "up w", "T J Y"},
        {"... when the STAY is answered", "w wake up w", "T J Y Y"},
        {"... but no more often", "up w w wake", "T J Y Y"},
        {"... not if JOIN fails", "up z", "T J"},
        {"not while no token is in line", "z up", "T J"},
        {"this is the one it joined with", "w @5 up w told", "T J Y =yes:Y"},
        {"... with the STAY under way", "w up told", "T J Y L =yes:J"},
        {"the next one is not", "w up w coming up w told", "T J Y Y Y"},
    };
    static const struct scene none[] = {
        {"STAY at once", "w up", "T J Y"},
        {"nothing changes", "w none coming", "T J"},
    };
    static const struct scene up[] = {
        {"one is lost and made anew", "w coming up", "T J Y"},
        {"... under a STAY", "w wake coming up w", "T J Y Y"},
    };
    (void)state;
    PLAY(MESSAGES_COMING, coming);
    PLAY(MESSAGES_NONE, none);
    PLAY(MESSAGES_UP, up);
}

/* A token that joined with a channel would be passed over for ever. */
static void messages_cease(void **state)
{
    static const struct scene scenes[] = {
        {"in line", "w none w", "T J U T J"},
        {"its JOIN is unanswered", "none w", "T J U T J"},
        {"a STAY is unanswered", "w wake none w", "T J Y U T J"},
        {"... answers of the old token are none", "w wake none w wake",
            "T J Y U T J Y"},
        {"none is in line", "z none", "T J"},
        {"twice", "w none w none", "T J U T J"},
        {"after the end", "w cancel none", "T J U =cancelled"},
    };
    (void)state;
    PLAY(MESSAGES_UP, scenes);
    PLAY(MESSAGES_COMING, scenes);
}

/* The channel is part of a token's place: it stays as it was at the JOIN. */
static void a_token_keeps_its_channel(void **state)
{
    static const struct {
        int joined_with;
        const char *steps;
        bool by_message;
    } rows[] = {
        {MESSAGES_UP, "w", true},
        {MESSAGES_COMING, "w", true},
        {MESSAGES_COMING, "w coming", true},
        {MESSAGES_NONE, "w", false},
        {MESSAGES_NONE, "w up w", false},
        {MESSAGES_NONE, "w up x", true},
        {MESSAGES_UP, "w coming wake", true},
        {MESSAGES_UP, "w none", false},
        {MESSAGES_UP, "z none wake", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        messages = (struct messages){
            (__typeof__(messages.state))rows[i].joined_with, 1};
        start(false, NEVER, NEVER);
        line_play(rows[i].steps);
        assert_int_equal(line.by_message, rows[i].by_message);
    }
}

/* A JOIN that was given up unanswered, because messages ceased, may have been
 * applied. */
static void a_token_given_up_is_in_doubt(void **state)
{
    (void)state;
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, 400 * MS, NS_PER_S);
    line_play("none");
    assert_true(line.late_grant_possible);
    line_play("z");
    while (line_verdict(&line) == LINE_OPEN)
        line_play("wake z");
    assert_int_equal(line_verdict(&line), LINE_MAY_GRANT);
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, MS, NS_PER_S);
    line_play("@5 none tick"); /* when the wait is over: none joins again */
    assert_true(line_did("nothing was answered", "T J U =unknown"));
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, NEVER, NEVER);
    /* One that was answered waits, so the lock may be handed over to it until
     * it is undone. An answer to a JOIN behind that leaves no doubt. */
    line_play("w none");
    assert_true(line.late_grant_possible);
    line_play("w");
    assert_false(line.late_grant_possible);
}

/* So may have been a STAY: it may have brought the lock. */
static void a_stay_given_up_is_in_doubt(void **state)
{
    (void)state;
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, 400 * MS, NS_PER_S);
    line_play("w @390 tick @401 none tick");
    assert_true(line_did("the STAY has no answer", "T J Y U =unknown"));
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, NEVER, NEVER);
    line_play("w wake none"); /* ... until the next token joins */
    assert_true(line.late_grant_possible);
    line_play("w");
    assert_false(line.late_grant_possible);
}

/* Though its STAY was just given up. */
static void a_message_leaves_no_request_behind(void **state)
{
    (void)state;
    messages = (struct messages){MESSAGES_UP, 1};
    start(false, NEVER, NEVER);
    line_play("w wake");
    wake();
    line_step("told"); /* before EFFECT_ABANDON is taken */
    assert_true(line_did("granted", "T J Y L =yes:J"));
}

/* The answer that ends the wait is no witness while what keeps the lock busy
 * may be an earlier token of the call. */
static void busy_perhaps_by_a_token_in_doubt(void **state)
{
    (void)state;
    for (unsigned owed = 0; owed < 2; owed++) {
        struct line_terms terms = line_terms(0, 2 * NS_PER_S);
        struct outcome o = busy(600);
        o.earlier_token_may_remain = owed;
        terms.doubt = true;
        start_with(&terms, true);
        say(o);
        assert_string_equal(trace, owed ? "J U =unknown" : "J U =no");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_when_a_lease_counts),
        cmocka_unit_test(tokens_that_it_is_not_for),
        cmocka_unit_test(over_other_connections),
        cmocka_unit_test(messages_begin),
        cmocka_unit_test(messages_cease),
        cmocka_unit_test(a_token_keeps_its_channel),
        cmocka_unit_test(a_token_given_up_is_in_doubt),
        cmocka_unit_test(busy_perhaps_by_a_token_in_doubt),
        cmocka_unit_test(a_stay_given_up_is_in_doubt),
        cmocka_unit_test(a_message_leaves_no_request_behind),
    };
    return cmocka_run_group_tests_name("line messages", tests, NULL, NULL);
}
