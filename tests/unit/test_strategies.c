/* SPDX-License-Identifier: MIT */
/*
 * Which way is tried after which, on what, what of it is remembered, and what
 * is said when there is none.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define BY_HASH "> EVALSHA sha:release 1 k T\n"
#define STAMPS "> TIME; GETRANGE k 0 511\n" NOPERM NOPERM
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define NOPERM5 NOPERM NOPERM NOPERM NOPERM NOPERM
#define LOADING5 "-LOADING x\n-LOADING y\n-LOADING y\n-LOADING y\n-LOADING y"
#define OTHER "+OK\n$other\n:500\n:1\n+OK\n"
#define DISCARD "> DISCARD\n+OK"

static const char letters[VERB_KINDS + 1] = "aerik";

static void which_are_weak(void **state)
{
    (void)state;
    dialect = (struct dialect){.connection = 1};
    for (unsigned i = 0; i < 4; i++) {
        dialect.preferred[VERB_ACQUIRE] = (unsigned char)i;
        assert_int_equal(strategies_weak(&dialect), i >= 2);
        assert_int_equal(strategies_need_clock(&dialect), i >= 2);
    }
    dialect.preferred[VERB_ACQUIRE] = 0;
    dialect.ttl_in_values = true;
    assert_false(strategies_weak(&dialect));
    assert_true(strategies_need_clock(&dialect));
    dialect.ttl_in_values = false;
}

static void the_order_of_the_ways(void **state)
{
    static const char *const names[VERB_KINDS][5] = {
        [VERB_ACQUIRE] = {"SET NX PX", "SETNX script",
            "SETNX + GETSET timestamps (weaker promises)",
            "SETNX + GETSET timestamps without WATCH (weakest promises)"},
        [VERB_EXTEND] = {"scripts", "WATCH", "timestamps",
            "timestamps without WATCH"},
        [VERB_RELEASE] = {"scripts", "WATCH", "timestamps",
            "timestamps without WATCH"},
        [VERB_INSPECT] = {"scripts", "GETRANGE", "timestamps"},
        [VERB_CAP_TTL] = {"scripts", "WATCH"},
        [VERB_RAISE] = {"fence script"},
        [VERB_QUERY] = {"query"},
        [VERB_JOIN] = {"wait script"},
        [VERB_STAY] = {"wait script"},
        [VERB_SUBSCRIBE] = {"SUBSCRIBE"},
        [VERB_BEGIN] = {"once scripts"},
        [VERB_READ_RECORD] = {"once scripts"},
        [VERB_TELL] = {"once scripts"},
        [VERB_FORGET] = {"once scripts"},
        [VERB_UNDO_BEGIN] = {"once scripts"},
    };

    (void)state;
    for (int kind = 0; kind < VERB_KINDS; kind++) {
        const struct dialect plain = {0};
        unsigned i = 0, of_token = 0, watched = 0;
        for (; names[kind][i]; i++) {
            const struct strategy *strategy =
                strategies_at((enum verb_kind)kind, i);
            assert_non_null(strategy);
            assert_string_equal(strategy->name, names[kind][i]);
            bool stamps = strstr(strategy->name, "timestamps") != NULL;
            assert_int_equal(
                strategy->is_script, kind == VERB_RELEASE && i == 0);
            assert_int_equal(strategy->ttl_is_in_value, stamps);
            assert_int_equal(strategy->weak, stamps);
            assert_int_equal(strategy->without_watch,
                strstr(strategy->name, "without WATCH") != NULL);
            of_token += !stamps;
            watched += !strategy->without_watch;
            if (strcmp(strategy->name, "WATCH") == 0)
                assert_ptr_equal(strategy->watched, &watched_token);
            else if (!stamps || strategy->without_watch || kind == VERB_INSPECT)
                assert_null(strategy->watched);
            else
                assert_ptr_equal(strategy->watched, timestamps_change.watched);
        }
        assert_null(strategies_at((enum verb_kind)kind, i));
        assert_null(strategies_at((enum verb_kind)kind, UINT32_MAX));
        struct strategies_range range =
            strategies_range(&plain, (enum verb_kind)kind, true);
        assert_int_equal(range.with_end, of_token);
        assert_int_equal(range.end, watched);
    }
}

/* -------------------------------------------------------- falling back */

/* What comes after that error to all of a way's first commands. */
static enum exchange_next after_refusal(
    char letter, unsigned strategy, const char *error)
{
    enum exchange_next next;

    begin(letter, strategy);
    sends();
    do
        next = answer(error);
    while (next == EXCHANGE_WAIT);
    return next;
}

static bool falls_back(char letter, unsigned strategy, const char *error)
{
    unsigned strategies = token_strategies((int)verb_of(letter).kind);

    if (after_refusal(letter, strategy, error) == EXCHANGE_DONE) {
        /* It has decided: the same way is taken next time. */
        assert_int_equal(dialect.preferred[verb.kind], strategy);
        return false;
    }
    sends();
    assert_int_equal(x.strategy_index, (strategy + 1) % strategies);
    assert_ptr_equal(x.strategy, strategies_at(verb.kind, x.strategy_index));
    /* Nothing is known of it yet. */
    assert_int_equal(dialect.preferred[verb.kind], strategy);
    return true;
}

static void what_is_fallen_back_on(void **state)
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
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int kind = 0; kind < VERB_KINDS; kind++) {
            for (unsigned strategy = 0; strategy < token_strategies(kind);
                 strategy++) {
                bool set = kind == VERB_ACQUIRE && strategy == 0;
                bool expected = set ? cases[i].unsupported : cases[i].refused;
                bool got = falls_back(letters[kind], strategy, cases[i].error);
                /* What is no string may be what only the script knows. */
                expected |= kind == VERB_INSPECT && strategy == 1 &&
                            strstr(cases[i].error, "WRONGTYPE");
                dialog = cases[i].error;
                check(got == expected, x.strategy->name,
                    expected ? "the next one" : "no other one");
            }
        }
    }
}

static void the_way_that_worked_is_remembered(void **state)
{
    (void)state;
    begin('r', 0);
    play(BY_HASH NOPERM WATCH OTHER DISCARD, "not mine");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 1);
    assert_int_equal(dialect.preferred[VERB_EXTEND], 0);
    exchange_begin(&x, &verb, NULL);
    play(WATCH OTHER DISCARD, "not mine");
    /* Also by one that is no decision, for it is none of the way. */
    exchange_begin(&x, &verb, NULL);
    play(WATCH LOADING5, "retry: LOADING x");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 1);
    /* Each verb for itself. */
    verb = verb_of('e');
    exchange_begin(&x, &verb, NULL);
    play("> EVALSHA sha:extend 1 k T 1000\n:1000", "mine 1000");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 1);
}

/* Rights change: what was refused at first may be all that works later. */
static void a_way_that_stops_working_leads_around(void **state)
{
    (void)state;
    begin('r', 1);
    play(WATCH NOPERM5 BY_HASH ":0", "not mine");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 0);
    begin('e', 1);
    play(WATCH NOPERM5 "> EVALSHA sha:extend 1 k T 1000\n:-2", "not mine");
    assert_int_equal(dialect.preferred[VERB_EXTEND], 0);
    begin('a', 1);
    play("> EVAL text:acquire 1 k T 1000\n" NOPERM
         "> SET k T NX PX 1000\n" NOPERM,
        "no permission: NOPERM this user may not");
    begin('a', 1); /* those of timestamps are the last in any case */
    play("> EVAL text:acquire 1 k T 1000\n" NOPERM
         "> SET k T NX PX 1000\n-ERR syntax error\n"
         "> TIME; GETRANGE k 0 511",
        NULL);
}

/* The words are the first refusal's, and so is the class; each way is tried
 * once, from wherever it begins. */
static void refused_in_every_way(void **state)
{
    static const struct row rows[] = {
        {'a', 0,
            "> SET k T NX PX 1000\n-ERR syntax error\n"
            "> EVAL text:acquire 1 k T 1000\n" NOPERM STAMPS,
            "unsupported: ERR syntax error"},
        {'A', 0,
            "> SET k T NX PX 1000; PTTL k\n-ERR syntax error\n:-2\n"
            "> EVAL text:acquire 1 k T 1000; PTTL k\n" NOPERM NOPERM STAMPS,
            "unsupported: ERR syntax error"},
        {'e', 0,
            "> EVALSHA sha:extend 1 k T 1000\n-NOPERM first\n" WATCH NOPERM5,
            "no permission: NOPERM first"},
        {'e', 1,
            WATCH "-NOPERM first\n" UNKNOWN UNKNOWN UNKNOWN UNKNOWN
                  "> EVALSHA sha:extend 1 k T 1000\n" UNKNOWN,
            "no permission: NOPERM first"},
        {'r', 0, BY_HASH "-NOPERM first\n" WATCH NOPERM5 STAMPS,
            "no permission: NOPERM first"},
        {'r', 0,
            BY_HASH "-ERR unknown command 'EVALSHA'\n" WATCH NOPERM5 STAMPS,
            "unsupported: ERR unknown command 'EVALSHA'"},
        {'r', 1,
            WATCH "-NOPERM first\n" UNKNOWN UNKNOWN UNKNOWN UNKNOWN BY_HASH
                UNKNOWN STAMPS,
            "no permission: NOPERM first"},
        {'r', 1,
            WATCH "-NOPERM first\n" UNKNOWN UNKNOWN UNKNOWN UNKNOWN BY_HASH
                  "-NOSCRIPT x\n> EVAL text:release 1 k T\n" UNKNOWN STAMPS,
            "no permission: NOPERM first"},
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n" UNKNOWN UNKNOWN UNKNOWN
                STAMPS,
            "no permission: NOPERM first"},
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n$other\n" UNKNOWN STAMPS,
            "no permission: NOPERM first"},
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n$other\n:1",
            "seen 'other' 5"},
        {'k', 0,
            "> EVALSHA sha:cap_ttl 1 k T 1000\n-NOPERM first\n" WATCH NOPERM5,
            "no permission: NOPERM first"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(rows[i].verb, rows[i].strategy);
        play(rows[i].dialog, rows[i].outcome);
        assert_int_equal(dialect.preferred[verb.kind],
            x.outcome.kind == OUTCOME_FAULT ? rows[i].strategy
                                            : x.strategy_index);
    }
}

/* A key that is no string may be a lock that several hold. The script that
 * would know it is denied; or unknown, and then there is no such lock. */
static void what_is_no_string(void **state)
{
    static const struct row rows[] = {
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n-NOPERM first\n"
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n" WRONGTYPE ":1",
            "no permission: NOPERM first"},
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n" UNKNOWN
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n" WRONGTYPE ":1",
            "wrong type: WRONGTYPE Operation against a key"},
        {'i', 1,
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n" WRONGTYPE ":1\n"
            "> EVALSHA sha:inspect 1 k\n-NOPERM second\n",
            "no permission: NOPERM second"},
        {'i', 1,
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n:5\n" WRONGTYPE ":1\n"
            "> EVALSHA sha:inspect 1 k\n" UNKNOWN,
            "wrong type: WRONGTYPE Operation against a key"},
    };

    (void)state;
    PLAY(rows);
}

/* Another fault than a refusal ends it, and says itself why. */
static void a_fault_of_a_stand_in_has_its_own_words(void **state)
{
    static const struct row rows[] = {
        {'A', 0,
            "> SET k T NX PX 1000; PTTL k\n-ERR syntax error\n:-2\n"
            "> EVAL text:acquire 1 k T 1000; PTTL k\n-OOM x\n:-2",
            "full: OOM x"},
        {'e', 0, "> EVALSHA sha:extend 1 k T 1000\n" NOPERM WATCH LOADING5,
            "retry: LOADING x"},
        {'e', 1, WATCH NOPERM5 "> EVALSHA sha:extend 1 k T 1000\n-OOM x",
            "full: OOM x"},
        {'r', 0, BY_HASH NOPERM WATCH "+OK\n$T\n:500\n:1\n:5", BROKEN},
        {'i', 0,
            "> EVALSHA sha:inspect 1 k\n" NOPERM
            "> PTTL k; GETRANGE k 0 511; EXISTS k\n-LOADING x\n-L y\n"
            "-L z",
            "retry: LOADING x"},
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
        {{0, 1, 1, 1}, "SET NX PX + WATCH"},
        {{0, 1, 0, 0}, "SET NX PX + scripts + WATCH"},
        {{0, 0, 1, 1}, "SET NX PX + WATCH + scripts"},
        {{0, 0, 0, 1}, "SET NX PX + scripts refused"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text text;
        text_clear(&text);
        dialect_begin(&dialect);
        memcpy(dialect.preferred, cases[i].at, sizeof(dialect.preferred));
        strategies_describe(&dialect, &text);
        assert_string_equal(text.data, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_the_ways),
        cmocka_unit_test(which_are_weak),
        cmocka_unit_test(what_is_fallen_back_on),
        cmocka_unit_test(the_way_that_worked_is_remembered),
        cmocka_unit_test(a_way_that_stops_working_leads_around),
        cmocka_unit_test(refused_in_every_way),
        cmocka_unit_test(what_is_no_string),
        cmocka_unit_test(a_fault_of_a_stand_in_has_its_own_words),
        cmocka_unit_test(the_ways_in_words),
    };
    return cmocka_run_group_tests_name("strategies", tests, NULL, NULL);
}
