/* SPDX-License-Identifier: MIT */
/*
 * Which ways there are, which one is remembered, and how they are called. On
 * which errors another one is tried, and what is said when there is none, is
 * decided once more by tests/fuzz/meaning.h for every reply.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define BY_HASH "> EVALSHA sha:release 1 k T\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define LOADING5 "-LOADING x\n-LOADING y\n-LOADING y\n-LOADING y\n-LOADING y"
#define OTHER "+OK\n$other\n:500\n:1\n+OK\n"
#define DISCARD "> DISCARD\n+OK"

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
        cmocka_unit_test(the_way_that_worked_is_remembered),
        cmocka_unit_test(what_is_no_string),
        cmocka_unit_test(the_ways_in_words),
    };
    return cmocka_run_group_tests_name("strategies", tests, NULL, NULL);
}
