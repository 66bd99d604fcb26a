/* SPDX-License-Identifier: MIT */
/*
 * Which ways there are, which one is remembered, and how they are called. What
 * SET, the scripts, WATCH and GETRANGE send, what every reply to them means, on
 * which errors another way is tried, and what is said when there is none, is
 * decided once more by tests/fuzz/meaning.h; here is what that leaves out.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define BY_HASH "> EVALSHA sha:release 1 k T\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define LOADING5 "-LOADING x\n-LOADING y\n-LOADING y\n-LOADING y\n-LOADING y"
#define OTHER "+OK\n$other\n:500\n:1\n+OK\n"
#define DISCARD "> DISCARD\n+OK"
#define BY_TEXT "> EVAL text:release 1 k T\n"
#define NOSCRIPT "-NOSCRIPT No matching script.\n"
#define SET_LEFT "> SET k T NX PX 1000; PTTL k\n"
#define READ "> PTTL k; GETRANGE k 0 511; EXISTS k\n"

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

/* --------------------------------------------- what the model leaves out */

#define QUERY "> TYPE a\\x00\\x0d\\x0a \n" /* the last word is empty */

/* Of a command that changes something, only 1 and 0 are answers. */
static void a_query(void **state)
{
    static const struct {
        bool changes;
        const char *dialog, *outcome;
    } rows[] = {
        {true, QUERY ":1", "mine"},
        {true, QUERY ":0", "not mine"},
        {true, QUERY ":2", BROKEN},
        {true, QUERY ":-1", BROKEN},
        {true, QUERY "+OK", BROKEN},
        {true, QUERY "nil", BROKEN},
        {true, QUERY "[]", BROKEN},
        {false, QUERY "+OK", "mine"},
        {false, QUERY "nil", "mine"},
        {false, QUERY NOPERM, "no permission: NOPERM this user may not"},
    };
    const struct slice words[] = {slice_of("TYPE"), {"a\0\r\n", 4}, {"", 0}};
    struct reply_values values = {.list = NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin('i', 0);
        verb = (struct verb){.kind = VERB_QUERY,
            .args = words,
            .arg_count = 3,
            .values = &values,
            .changes = rows[i].changes};
        exchange_begin(&x, &verb, NULL);
        play(rows[i].dialog, rows[i].outcome);
    }
}

static void a_lease_is_capped(void **state)
{
    static const struct row rows[] = {
        {'k', 0, "> EVALSHA sha:cap_ttl 1 k T 1000\n:1", "mine"},
        {'k', 0, "> EVALSHA sha:cap_ttl 1 k T 1000\n:0", "not mine"},
        {'k', 0,
            "> EVALSHA sha:cap_ttl 1 k T 1000\n-NOSCRIPT No matching script\n"
            "> EVAL text:cap_ttl 1 k T 1000\n:1",
            "mine"},
    };

    (void)state;
    PLAY(rows);
}

/* Those that hold a lock together: pairs of a value and the time that it has
 * left, and nothing else. */
static void holders_are_listed(void **state)
{
    static const struct {
        enum reply_kind kind;
        bool nested;
        const char *values[5], *outcome;
    } rows[] = {
        {REPLY_ARRAY, false, {"a", "5", "b", "7"}, "seen 'a' 5"},
        {REPLY_ARRAY, false, {"a", "-1"}, "seen 'a' for ever"},
        {REPLY_ARRAY, false, {"a", "-2"}, "seen 'a' 0"},
        {REPLY_ARRAY, false, {NULL}, "free"},
        {REPLY_ARRAY, true, {"a", "5"}, BROKEN},
        {REPLY_ARRAY, false, {"a", "5", "b"}, BROKEN},
        {REPLY_ARRAY, false, {"a", "b"}, BROKEN},
        {REPLY_ARRAY, false, {"a", "-3"}, BROKEN},
        {REPLY_STRING, false, {"a", "5"}, BROKEN},
        {REPLY_NIL, false, {NULL}, BROKEN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply_values values = {.list = NULL};
        struct reply reply = {.kind = rows[i].kind, .nested = rows[i].nested};
        begin('i', 0);
        verb.values = &values;
        exchange_begin(&x, &verb, NULL);
        sends();
        for (size_t k = 0; rows[i].values[k]; k++)
            reply_values_add(&values, slice_of(rows[i].values[k]));
        assert_int_equal(exchange_reply(&x, &reply), EXCHANGE_DONE);
        assert_string_equal(outcome(), rows[i].outcome);
        reply_values_free(&values);
    }
}

static void whole_from_the_start(void **state)
{
    (void)state;
    begin('r', 0);
    x.always_text = true;
    play(BY_TEXT NOSCRIPT, "retry: NOSCRIPT No matching script.");
    /* Also after it was begun anew elsewhere. */
    begin('r', 0);
    x.always_text = true;
    play(BY_TEXT NOPERM WATCH, NULL);
    dialect_begin(&dialect);
    play(BY_TEXT ":1", "mine");
}

#define SET_KIND(how, ms)                                                      \
    "> SET k T NX PX 1000; " how ":hold_back 2 k {k}:nxl-w " ms "\n"

/* Who waits without a line asks a script whether several hold the lock; or, if
 * the server refuses that, PTTL. */
static void the_kind_of_the_holder(void **state)
{
    (void)state;
    begin('A', 0);
    verb.asks_kind = true;
    play(SET_KIND("EVAL text", "0") "nil\n[:500 :0]", "busy 500");
    assert_false(x.outcome.several_holders);

    exchange_restart(&x, &verb, NULL);
    verb.hold_back_ms = 120;
    play(SET_KIND("EVALSHA sha", "120") "nil\n[:500 :1]", "busy 500");
    assert_true(x.outcome.several_holders);
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVALSHA sha", "120") "+OK\n[:500 :0]", "granted");
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVALSHA sha", "120") "nil\n-NOSCRIPT x", "busy");
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVAL text", "120") "nil\n[:500]", BROKEN);
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVAL text", "120") "nil\n:500", BROKEN);
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVAL text", "120") "nil\n[:-3 :0]", BROKEN);
    exchange_restart(&x, &verb, NULL);
    play(SET_KIND("EVAL text", "120") "nil\n" NOPERM, "busy");
    exchange_restart(&x, &verb, NULL);
    play(SET_LEFT "nil\n:500", "busy 500");
    exchange_free(&x);
}

/* Whether it was the script is known of this very command. */
static void a_refusal_between(void **state)
{
    (void)state;
    begin('A', 0);
    verb.asks_kind = true;
    play(SET_KIND("EVAL text", "0"), NULL);
    dialect.hold_back = HOLD_BACK_REFUSED;
    assert_int_equal(answer("nil"), EXCHANGE_WAIT);
    assert_int_equal(answer("[:500 :1]"), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_BUSY);
    assert_true(x.outcome.several_holders);
    exchange_free(&x);
}

/* Without memory the exchange takes the replies, and says what it lacks. */
static enum exchange_next starved(const struct reply *reply)
{
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    exchange_free(&x);
    alloc_fail_from(1);
    enum exchange_next next = exchange_reply(&x, reply);
    assert_true(alloc_stop());
    return next;
}

static void a_value_without_memory_is_a_fault(void **state)
{
    struct reply left = {.kind = REPLY_INTEGER, .integer = 5};
    struct reply read = {.kind = REPLY_STRING, .bytes = slice_of("value")};
    struct reply there = {.kind = REPLY_INTEGER, .integer = 1};

    (void)state;
    begin('i', 1);
    sends();
    assert_int_equal(exchange_reply(&x, &left), EXCHANGE_WAIT);
    assert_int_equal(starved(&read), EXCHANGE_WAIT);
    assert_int_equal(exchange_reply(&x, &there), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_FAULT);
    assert_int_equal(x.outcome.fault, FAULT_SYSTEM);
    assert_false(x.outcome.unsure);
    assert_non_null(strstr(x.outcome.text.data, "out of memory"));
}

static void words_without_memory_change_no_fault(void **state)
{
    struct reply error = {
        .kind = REPLY_ERROR, .bytes = slice_of("READONLY a replica")};
    struct reply left = {.kind = REPLY_INTEGER, .integer = -2};

    (void)state;
    begin('A', 0);
    sends();
    assert_int_equal(starved(&error), EXCHANGE_WAIT);
    assert_int_equal(exchange_reply(&x, &left), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_FAULT);
    assert_int_equal(x.outcome.fault, FAULT_NOT_PRIMARY);
    assert_non_null(strstr(x.outcome.text.data, "out of memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_the_ways),
        cmocka_unit_test(which_are_weak),
        cmocka_unit_test(the_way_that_worked_is_remembered),
        cmocka_unit_test(what_is_no_string),
        cmocka_unit_test(the_ways_in_words),
        cmocka_unit_test(a_query),
        cmocka_unit_test(a_lease_is_capped),
        cmocka_unit_test(holders_are_listed),
        cmocka_unit_test(whole_from_the_start),
        cmocka_unit_test(the_kind_of_the_holder),
        cmocka_unit_test(a_refusal_between),
        cmocka_unit_test(a_value_without_memory_is_a_fault),
        cmocka_unit_test(words_without_memory_change_no_fault),
    };
    return cmocka_run_group_tests_name("strategies", tests, NULL, NULL);
}
