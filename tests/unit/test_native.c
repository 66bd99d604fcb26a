/* SPDX-License-Identifier: MIT */
/*
 * The strategies without a script or a transaction, to acquire and to inspect:
 * what they send, and what every reply means.
 */
#include "support/test.h"

#include "support/alloc.h"
#include "unit/strategy_rig.h"

#define SET_NX "> SET k T NX PX 1000\n"
#define SET_LEFT "> SET k T NX PX 1000; PTTL k\n"
#define READ "> PTTL k; GETRANGE k 0 511; EXISTS k\n"
#define NO_ARITY "-ERR wrong number of arguments for 'set' command\n"

static void set_nx(void **state)
{
    static const struct row rows[] = {
        {'a', 0, SET_NX "+OK", "granted"},
        {'a', 0, SET_NX "nil", "busy"},
        {'a', 0, SET_NX "-READONLY x", "elsewhere: READONLY x"},
        {'a', 0, SET_NX "-MISCONF x", "refusing: MISCONF x"},
        {'a', 0, SET_NX "-LOADING x", "retry: LOADING x"},
        {'a', 0, SET_NX "-ERR strange", "server, unsure: ERR strange"},
        /* Who may not SET may not lock by another command either. */
        {'a', 0, SET_NX NOPERM, "no permission: NOPERM this user may not"},
        {'a', 0, SET_NX NO_ARITY "> EVAL text:acquire 1 k T 1000", NULL},
        {'A', 0, SET_LEFT "nil\n:500", "busy 500"},
        {'A', 0, SET_LEFT "nil\n:-1\n> TIME; GETRANGE k 0 511; PTTL k", NULL},
        {'A', 0, SET_LEFT "nil\n+OK", BROKEN},
        {'A', 0, SET_LEFT "-OOM x\n:5", "full: OOM x"},
    };

    (void)state;
    PLAY(rows);
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

static void a_value_is_read(void **state)
{
    static const struct row rows[] = {
        {'i', 1, READ ":77\n$other\n:1", "seen 'other' 77"},
        {'i', 1, READ ":-2\n$\n:0", "free"},
        {'i', 1, READ ":-1\n$\n:0", "free"}, /* before 2.8 */
        {'I', 1, READ ":77\n$T\n:1", "mine 77"},
        {'I', 1, READ ":-1\n$T\n:1", "mine for ever"},
        {'I', 1, READ ":77\n$T@a\n:1", "not mine"},
        {'I', 1, READ ":1\n$T\n:0", "not mine"}, /* it ended meanwhile */
    };

    (void)state;
    PLAY(rows);
}

/* The value that was read before its key ended is not there any more. */
static void a_key_that_ends_meanwhile_has_no_value(void **state)
{
    (void)state;
    begin('i', 1);
    play(READ ":1\n$other\n:0", "free");
}

static void values_that_are_none(void **state)
{
    static const struct row rows[] = {
        {'i', 1, READ "+OK\n$other\n:1", BROKEN},
        {'i', 1, READ ":-3\n$other\n:1", BROKEN},
        {'i', 1, READ ":5\n:7\n:1", BROKEN},
        /* What was broken stays broken. */
        {'i', 1, READ "+OK\n" NOPERM NOPERM, BROKEN},
        /* Several may hold the lock: the script would know. */
        {'i', 1, READ WRONGTYPE "$\n:1\n> EVALSHA sha:inspect 1 k", NULL},
        {'I', 1, READ ":5\n" WRONGTYPE ":1",
            "not mine: WRONGTYPE Operation against a key"},
        {'i', 1, READ "-LOADING x\n$other\n:1", "retry: LOADING x"},
    };

    (void)state;
    PLAY(rows);
}

/* A stranger's value may be longer than what is kept of it. */
static void a_long_value_is_kept_to_512_bytes(void **state)
{
    static char value[2000];
    struct reply left = {.kind = REPLY_INTEGER, .integer = 5};
    struct reply read = {.kind = REPLY_STRING, .bytes = {value, sizeof(value)}};
    struct reply there = {.kind = REPLY_INTEGER, .integer = 1};

    (void)state;
    memset(value, 'v', sizeof(value));
    begin('i', 1);
    sends();
    assert_int_equal(exchange_reply(&x, &left), EXCHANGE_WAIT);
    assert_int_equal(exchange_reply(&x, &read), EXCHANGE_WAIT);
    memset(value, 'z', sizeof(value));
    assert_int_equal(exchange_reply(&x, &there), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_SEEN);
    assert_int_equal(x.outcome.value.len, 512);
    for (size_t i = 0; i < 512; i++)
        assert_int_equal(x.outcome.value.data[i], 'v');
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
        cmocka_unit_test(set_nx),
        cmocka_unit_test(the_kind_of_the_holder),
        cmocka_unit_test(a_refusal_between),
        cmocka_unit_test(a_value_is_read),
        cmocka_unit_test(a_key_that_ends_meanwhile_has_no_value),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(a_long_value_is_kept_to_512_bytes),
        cmocka_unit_test(a_value_without_memory_is_a_fault),
        cmocka_unit_test(words_without_memory_change_no_fault),
    };
    return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
