/* SPDX-License-Identifier: MIT */
/* The strategy of scripts: what it sends, and what every reply to it means. */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define ACQUIRE "> EVAL text:acquire 1 k T 1000\n"
#define ACQUIRE_LEFT "> EVAL text:acquire 1 k T 1000; PTTL k\n"
#define EXTEND "> EVALSHA sha:extend 1 k T 1000\n"
#define EXTEND_WHOLE "> EVAL text:extend 1 k T 1000\n"
#define RELEASE "> EVALSHA sha:release 1 k T\n"
#define RELEASE_WHOLE "> EVAL text:release 1 k T\n"
#define INSPECT "> EVALSHA sha:inspect 1 k\n"
#define INSPECT_WHOLE "> EVAL text:inspect 1 k\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define NOSCRIPT "-NOSCRIPT No matching script.\n"
#define HIDDEN "ERR Error running script (call to f_0): @user_script:1: "

static void an_acquire_goes_whole(void **state)
{
    static const struct row rows[] = {
        {'a', 1, ACQUIRE "+OK", "granted"},
        {'a', 1, ACQUIRE "nil", "busy"},
        {'a', 1, ACQUIRE ":1", BROKEN},
        {'a', 1, ACQUIRE "-READONLY x", "elsewhere: READONLY x"},
        {'a', 1, ACQUIRE NOSCRIPT, "retry: NOSCRIPT No matching script."},
        {'a', 1, ACQUIRE WRONGTYPE,
            "wrong type: WRONGTYPE Operation against a key"},
        {'a', 1, ACQUIRE "-PROXY gone", "server, unsure: PROXY gone"},
        {'A', 1, ACQUIRE_LEFT "+OK\n:1000", "granted"},
        {'A', 1, ACQUIRE_LEFT "nil\n:500", "busy 500"},
        {'A', 1, ACQUIRE_LEFT "nil\n:-3", BROKEN},
        {'A', 1, ACQUIRE_LEFT "-OOM x\n:-2", "full: OOM x"},
    };

    (void)state;
    PLAY(rows);
}

static void an_extend(void **state)
{
    static const struct row rows[] = {
        {'e', 0, EXTEND, NULL},
        {'e', 0, EXTEND ":1000", "mine 1000"},
        {'e', 0, EXTEND ":-1", "mine for ever"},
        {'e', 0, EXTEND ":-2", "not mine"},
        {'e', 0, EXTEND ":-3", BROKEN},
        {'e', 0, EXTEND "nil", BROKEN},
        {'e', 0, EXTEND WRONGTYPE,
            "not mine: WRONGTYPE Operation against a key"},
        {'e', 0, EXTEND "-" HIDDEN "-READONLY x",
            "elsewhere: " HIDDEN "-READONLY x"},
        {'e', 0, EXTEND "-BUSY x", "retry: BUSY x"},
        {'e', 0, EXTEND "-ERR strange", "server, unsure: ERR strange"},
    };

    (void)state;
    PLAY(rows);
}

static void a_release(void **state)
{
    static const struct row rows[] = {
        {'r', 0, RELEASE, NULL},
        {'r', 0, RELEASE ":1", "mine"},
        {'r', 0, RELEASE ":0", "not mine"},
        {'r', 0, RELEASE ":2", "mine"}, /* handed over */
        {'r', 0, RELEASE ":-1", BROKEN},
        {'r', 0, RELEASE UNKNOWN WATCH, NULL},
        {'r', 0, RELEASE ":3", BROKEN}, /* it was in no line */
        {'r', 0, RELEASE WRONGTYPE,
            "not mine: WRONGTYPE Operation against a key"},
        {'r', 0, RELEASE "-MISCONF x", "refusing: MISCONF x"},
    };

    (void)state;
    PLAY(rows);
}

static void what_is_kept(void **state)
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

static void an_inspect(void **state)
{
    static const struct row rows[] = {
        {'i', 0, INSPECT, NULL},
        {'i', 0, INSPECT "[$other :77]", "seen 'other' 77"},
        {'i', 0, INSPECT "[$other :-2]", "seen 'other' 0"},
        {'i', 0, INSPECT "[$other :-3]", BROKEN},
        {'i', 0, INSPECT NOPERM "> PTTL k; GETRANGE k 0 511; EXISTS k", NULL},
        {'i', 0, INSPECT "[]", "free"},
        {'i', 0, INSPECT "[$other nil]", BROKEN},
        {'i', 0, INSPECT WRONGTYPE,
            "wrong type: WRONGTYPE Operation against a key"},
        {'I', 0, INSPECT "[$T :77]", "mine 77"},
        {'I', 0, INSPECT "[$T :-1]", "mine for ever"},
        {'I', 0, INSPECT "[$T@a :77]", "not mine"},
    };

    (void)state;
    PLAY(rows);
}

/* The text follows once, decides as the hash does, and is not asked twice. */
static void a_script_that_is_not_there_goes_whole(void **state)
{
    static const struct row rows[] = {
        {'e', 0, EXTEND NOSCRIPT EXTEND_WHOLE ":1000", "mine 1000"},
        {'e', 0, EXTEND NOSCRIPT EXTEND_WHOLE ":-2", "not mine"},
        {'e', 0, EXTEND NOSCRIPT EXTEND_WHOLE NOSCRIPT,
            "retry: NOSCRIPT No matching script."},
        {'e', 0, EXTEND NOSCRIPT EXTEND_WHOLE NOPERM WATCH, NULL},
        {'r', 0, RELEASE NOSCRIPT RELEASE_WHOLE ":1", "mine"},
        {'r', 0, RELEASE NOSCRIPT RELEASE_WHOLE ":0", "not mine"},
        {'r', 0, RELEASE NOSCRIPT RELEASE_WHOLE NOSCRIPT,
            "retry: NOSCRIPT No matching script."},
        {'r', 0, RELEASE NOSCRIPT RELEASE_WHOLE NOPERM WATCH, NULL},
        {'i', 0, INSPECT NOSCRIPT INSPECT_WHOLE "[]", "free"},
        {'i', 0, INSPECT NOSCRIPT INSPECT_WHOLE NOSCRIPT,
            "retry: NOSCRIPT No matching script."},
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
    play(RELEASE_WHOLE NOSCRIPT, "retry: NOSCRIPT No matching script.");
    /* Also after it was begun anew elsewhere. */
    begin('r', 0);
    x.always_text = true;
    play(RELEASE_WHOLE NOPERM WATCH, NULL);
    dialect_begin(&dialect);
    play(RELEASE_WHOLE ":1", "mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acquire_goes_whole),
        cmocka_unit_test(an_extend),
        cmocka_unit_test(a_release),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(an_inspect),
        cmocka_unit_test(a_script_that_is_not_there_goes_whole),
        cmocka_unit_test(holders_are_listed),
        cmocka_unit_test(whole_from_the_start),
    };
    return cmocka_run_group_tests_name("scripted", tests, NULL, NULL);
}
