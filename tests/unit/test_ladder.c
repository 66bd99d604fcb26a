/* SPDX-License-Identifier: MIT */
/*
 * Which way is tried after which, on what, what of it is remembered, and what
 * is said when there is none.
 */
#include "support/test.h"

#include "unit/rung_rig.h"

#define BY_HASH "> EVALSHA sha:release 1 k T\n"
#define STAMPS "> TIME; GETRANGE k 0 511\n" NOPERM NOPERM
#define DELEX "> DELEX k IFEQ T\n"
#define DELIFEQ "> DELIFEQ k T\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define NOPERM5 NOPERM NOPERM NOPERM NOPERM NOPERM

static const char letters[VERB_KINDS + 1] = "aerik";

static void the_order_of_the_ways(void **state)
{
    static const char *const names[VERB_KINDS][7] = {
        [VERB_ACQUIRE] = {"SET NX PX", "SETNX script",
            "SETNX + GETSET timestamps (weaker promises)",
            "SETNX + GETSET timestamps without WATCH (weakest promises)"},
        [VERB_EXTEND] = {"scripts", "WATCH", "SET IFEQ", "timestamps",
            "timestamps without WATCH"},
        [VERB_RELEASE] = {"scripts", "DELEX", "DELIFEQ", "WATCH", "timestamps",
            "timestamps without WATCH"},
        [VERB_INSPECT] = {"scripts", "GETRANGE", "timestamps"},
        [VERB_KEEP] = {"scripts", "WATCH"},
    };

    (void)state;
    for (int kind = 0; kind < VERB_KINDS; kind++) {
        unsigned i = 0;
        for (; names[kind][i]; i++) {
            const struct rung *rung = ladder_rung((enum verb_kind)kind, i);
            assert_non_null(rung);
            assert_string_equal(rung->name, names[kind][i]);
            bool stamps = strstr(rung->name, "timestamps") != NULL;
            assert_int_equal(rung->at_once,
                kind == VERB_RELEASE && !rung->watched && !stamps);
            assert_int_equal(
                rung->bare, strstr(rung->name, "without WATCH") != NULL);
            if (strcmp(rung->name, "WATCH") == 0)
                assert_ptr_equal(rung->watched, &watched_token);
            else if (!stamps || rung->bare || kind == VERB_INSPECT)
                assert_null(rung->watched);
            else
                assert_ptr_equal(rung->watched, &stamped_watched);
        }
        assert_int_equal(ladder_rungs((enum verb_kind)kind), i);
        assert_null(ladder_rung((enum verb_kind)kind, i));
        assert_null(ladder_rung((enum verb_kind)kind, UINT32_MAX));
    }
}

/* ---------------------------------------------------------------- climbing */

/* What comes after that error to all of a way's first commands. */
static enum exchange_next after_refusal(
    char letter, unsigned rung, const char *error)
{
    enum exchange_next next;

    begin(letter, rung);
    sends();
    do
        next = answer(error);
    while (next == EXCHANGE_WAIT);
    return next;
}

static bool climbs(char letter, unsigned rung, const char *error)
{
    unsigned rungs = token_rungs((int)verb_of(letter).kind);

    if (after_refusal(letter, rung, error) == EXCHANGE_DONE) {
        /* It has decided: the same way is taken next time. */
        assert_int_equal(ladder.at[verb.kind], rung);
        return false;
    }
    sends();
    assert_int_equal(x.at, (rung + 1) % rungs);
    assert_ptr_equal(x.rung, ladder_rung(verb.kind, x.at));
    /* Nothing is known of it yet. */
    assert_int_equal(ladder.at[verb.kind], rung);
    return true;
}

static void what_is_climbed_on(void **state)
{
    static const struct {
        const char *error;
        bool unsupported, refused;
    } cases[] = {
        {"-ERR unknown command 'X'", true, true},
        {"-ERR unknown command `X`, with args beginning with: `k`, ", true,
            true},
        {"-ERR syntax error", true, true},
        {"-ERR wrong number of arguments for 'x' command", true, true},
        {"-NOPERM this user may not", false, true},
        {"-ERR This Redis command is not allowed from script", true, true},
        /* No other command would fare better. */
        {"-NOAUTH Authentication required.", false, false},
        {"-WRONGPASS x", false, false},
        {"-DENIED Redis is running in protected mode", false, false},
        {"-ERR operation not permitted", false, false},
        /* It may have been done, or may be later. */
        {"-ERR strange", false, false},
        {"-LOADING x", false, false},
        {"-BUSY x", false, false},
        {"-READONLY x", false, false},
        {"-MOVED 1 h:1", false, false},
        {"-OOM x", false, false},
        {"-MISCONF x", false, false},
        {"-NOREPLICAS x", false, false},
        {"-WRONGTYPE x", false, false},
        {"-EXECABORT x", false, false},
        {"-", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int kind = 0; kind < VERB_KINDS; kind++) {
            for (unsigned rung = 0; rung < token_rungs(kind); rung++) {
                bool set = kind == VERB_ACQUIRE && rung == 0;
                bool expected =
                    set ? cases[i].unsupported : cases[i].refused;
                bool got = climbs(letters[kind], rung, cases[i].error);
                dialog = cases[i].error;
                check(got == expected, x.rung->name,
                    expected ? "the next one" : "no other one");
            }
        }
    }
}

static void the_way_that_worked_is_remembered(void **state)
{
    (void)state;
    begin('r', 0);
    play(BY_HASH NOPERM DELEX UNKNOWN DELIFEQ ":1", "mine");
    assert_int_equal(ladder.at[VERB_RELEASE], 2);
    assert_int_equal(ladder.at[VERB_EXTEND], 0);
    exchange_begin(&x, &verb, NULL);
    play(DELIFEQ ":0", "not mine");
    /* Also by one that is no decision, for it is none of the way. */
    exchange_begin(&x, &verb, NULL);
    play(DELIFEQ "-LOADING x", "retry: LOADING x");
    assert_int_equal(ladder.at[VERB_RELEASE], 2);
    /* Each verb for itself. */
    verb = verb_of('e');
    exchange_begin(&x, &verb, NULL);
    play("> EVALSHA sha:extend 1 k T 1000\n:1000", "mine 1000");
    assert_int_equal(ladder.at[VERB_RELEASE], 2);
}

/* Rights change: what was refused at first may be all that works later. */
static void a_way_that_stops_working_leads_around(void **state)
{
    (void)state;
    begin('r', 3);
    play(WATCH NOPERM5 BY_HASH NOPERM DELEX ":1", "mine");
    assert_int_equal(ladder.at[VERB_RELEASE], 1);
    begin('r', 1);
    play(DELEX NOPERM DELIFEQ UNKNOWN WATCH NOPERM5 BY_HASH ":0", "not mine");
    assert_int_equal(ladder.at[VERB_RELEASE], 0);
    begin('e', 2);
    play("> PTTL k\n" NOPERM "> EVALSHA sha:extend 1 k T 1000\n:-2",
        "not mine");
    assert_int_equal(ladder.at[VERB_EXTEND], 0);
    begin('a', 1);
    play("> EVAL text:acquire 1 k T 1000\n" NOPERM
         "> SET k T NX PX 1000\n" NOPERM, "denied: NOPERM this user may not");
    begin('a', 1); /* those of timestamps are the last in any case */
    play("> EVAL text:acquire 1 k T 1000\n" NOPERM
         "> SET k T NX PX 1000\n-ERR syntax error\n"
         "> TIME; GETRANGE k 0 511", NULL);
}

/* The words are the first refusal's, and so is the class; each way is tried
 * once, from wherever it begins. */
static void refused_in_every_way(void **state)
{
    static const struct row rows[] = {
        {'a', 0, "> SET k T NX PX 1000\n-ERR syntax error\n"
                 "> EVAL text:acquire 1 k T 1000\n" NOPERM STAMPS,
            "unsupported: ERR syntax error"},
        {'A', 0, "> SET k T NX PX 1000; PTTL k\n-ERR syntax error\n:-2\n"
                 "> EVAL text:acquire 1 k T 1000; PTTL k\n" NOPERM NOPERM
                 STAMPS,
            "unsupported: ERR syntax error"},
        {'e', 0, "> EVALSHA sha:extend 1 k T 1000\n-NOPERM first\n"
                 WATCH NOPERM5 "> PTTL k\n:5\n> SET k T IFEQ T PX 1000\n"
                 UNKNOWN, "denied: NOPERM first"},
        {'e', 2, "> PTTL k\n:5\n> SET k T IFEQ T PX 1000\n-ERR syntax error\n"
                 "> EVALSHA sha:extend 1 k T 1000\n" NOPERM WATCH NOPERM5,
            "unsupported: ERR syntax error"},
        {'r', 0, BY_HASH "-NOPERM first\n" DELEX UNKNOWN DELIFEQ UNKNOWN
                 WATCH NOPERM5 STAMPS, "denied: NOPERM first"},
        {'r', 0, BY_HASH "-ERR unknown command 'EVALSHA'\n" DELEX NOPERM
                 DELIFEQ NOPERM WATCH NOPERM5 STAMPS,
            "unsupported: ERR unknown command 'EVALSHA'"},
        {'r', 2, DELIFEQ "-NOPERM first\n" WATCH NOPERM5 BY_HASH UNKNOWN
                 DELEX UNKNOWN STAMPS, "denied: NOPERM first"},
        {'r', 3, WATCH "-NOPERM first\n" UNKNOWN UNKNOWN UNKNOWN UNKNOWN
                 BY_HASH UNKNOWN DELEX UNKNOWN DELIFEQ UNKNOWN STAMPS,
            "denied: NOPERM first"},
        {'r', 2, DELIFEQ "-NOPERM first\n" WATCH NOPERM5 BY_HASH
                 "-NOSCRIPT x\n> EVAL text:release 1 k T\n" UNKNOWN DELEX
                 UNKNOWN STAMPS, "denied: NOPERM first"},
        {'i', 0, "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
                 "> PTTL k; GETRANGE k 0 511; EXISTS k\n" UNKNOWN UNKNOWN
                 UNKNOWN STAMPS, "denied: NOPERM first"},
        {'i', 0, "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
                 "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n$other\n" UNKNOWN
                 STAMPS,
            "denied: NOPERM first"},
        {'i', 0, "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
                 "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n$other\n:1",
            "seen 'other' 5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].verb, rows[i].rung);
        play(rows[i].dialog, rows[i].outcome);
        assert_int_equal(ladder.at[verb.kind],
            x.outcome.kind == OUTCOME_FAULT ? rows[i].rung : x.at);
    }
}

/* Another fault than a refusal ends it, and says itself why. */
static void a_fault_of_a_stand_in_has_its_own_words(void **state)
{
    static const struct row rows[] = {
        {'r', 0, BY_HASH NOPERM DELEX "-READONLY x", "elsewhere: READONLY x"},
        {'r', 0, BY_HASH NOPERM DELEX "+OK", BROKEN},
        {'A', 0, "> SET k T NX PX 1000; PTTL k\n-ERR syntax error\n:-2\n"
                 "> EVAL text:acquire 1 k T 1000; PTTL k\n-OOM x\n:-2",
            "full: OOM x"},
        {'e', 0, "> EVALSHA sha:extend 1 k T 1000\n" NOPERM WATCH
                 "-LOADING x\n-LOADING y\n-LOADING y\n-LOADING y\n"
                 "-LOADING y", "retry: LOADING x"},
        {'e', 1, WATCH NOPERM5 "> PTTL k\n:5\n> SET k T IFEQ T PX 1000\n"
                 "-OOM x", "full: OOM x"},
        {'i', 0, "> EVALSHA sha:inspect 1 k\n" NOPERM
                 "> PTTL k; GETRANGE k 0 511; EXISTS k\n-LOADING x\n-L y\n"
                 "-L z", "retry: LOADING x"},
    };

    (void)state;
    PLAY(rows);
}

static void the_ways_in_words(void **state)
{
    static const struct {
        unsigned char at[VERB_KINDS];
        const char *words;
    } cases[] = {
        {{0, 0, 0, 0}, "SET NX PX + scripts"},
        {{1, 0, 0, 0}, "SETNX script + scripts"},
        {{0, 2, 1, 1}, "SET NX PX + DELEX + SET IFEQ"},
        {{0, 2, 2, 1}, "SET NX PX + DELIFEQ + SET IFEQ"},
        {{0, 1, 3, 1}, "SET NX PX + WATCH"},
        {{0, 1, 1, 0}, "SET NX PX + DELEX + WATCH"},
        {{0, 0, 3, 1}, "SET NX PX + WATCH + scripts"},
        {{0, 0, 0, 1}, "SET NX PX + scripts refused"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text text;
        text_clear(&text);
        ladder_begin(&ladder);
        memcpy(ladder.at, cases[i].at, sizeof ladder.at);
        ladder_describe(&ladder, &text);
        assert_string_equal(text.data, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_the_ways),
        cmocka_unit_test(what_is_climbed_on),
        cmocka_unit_test(the_way_that_worked_is_remembered),
        cmocka_unit_test(a_way_that_stops_working_leads_around),
        cmocka_unit_test(refused_in_every_way),
        cmocka_unit_test(a_fault_of_a_stand_in_has_its_own_words),
        cmocka_unit_test(the_ways_in_words),
    };
    return cmocka_run_group_tests_name("ladder", tests, NULL, NULL);
}
