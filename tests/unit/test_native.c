/* SPDX-License-Identifier: MIT */
/*
 * The strategies of one command: what they send, and what every reply means.
 * None of them may delete without comparing, or shorten what stands, except for
 * the rest of min_hold_ms.
 */
#include "support/test.h"

#include "support/alloc.h"
#include "unit/strategy_starved.h"

#define SET_NX "> SET k T NX PX 1000\n"
#define SET_LEFT "> SET k T NX PX 1000; PTTL k\n"
#define ASK "> PTTL k\n"
#define SET_IFEQ "> SET k T IFEQ T PX 1000\n"
#define DELEX "> DELEX k IFEQ T\n"
#define DELIFEQ "> DELIFEQ k T\n"
#define READ "> PTTL k; GETRANGE k 0 511; EXISTS k\n"
#define SYNTAX "-ERR syntax error\n"
#define NO_ARITY "-ERR wrong number of arguments for 'set' command\n"

static void set_nx(void **state)
{
    static const struct row rows[] = {
        {'a', 0, SET_NX "+OK", "granted"},
        {'a', 0, SET_NX "nil", "busy"},
        {'a', 0, SET_NX "+QUEUED", BROKEN},
        {'a', 0, SET_NX "+ok", BROKEN},
        {'a', 0, SET_NX "$OK", BROKEN},
        {'a', 0, SET_NX ":1", BROKEN},
        {'a', 0, SET_NX "[+OK]", BROKEN},
        {'a', 0, SET_NX "[]", BROKEN},
        {'a', 0, SET_NX "-READONLY x", "elsewhere: READONLY x"},
        {'a', 0, SET_NX "-OOM x", "full: OOM x"},
        {'a', 0, SET_NX "-MISCONF x", "refusing: MISCONF x"},
        {'a', 0, SET_NX "-LOADING x", "retry: LOADING x"},
        {'a', 0, SET_NX "-ERR strange", "server, unsure: ERR strange"},
        /* Who may not SET may not lock by another command either. */
        {'a', 0, SET_NX NOPERM, "no permission: NOPERM this user may not"},
        {'a', 0, SET_NX NO_ARITY "> EVAL text:acquire 1 k T 1000", NULL},
        {'a', 0, SET_NX SYNTAX "> EVAL text:acquire 1 k T 1000", NULL},
        {'A', 0, SET_LEFT "+OK\n:1000", "granted"},
        {'A', 0, SET_LEFT "nil\n:500", "busy 500"},
        {'A', 0, SET_LEFT "nil\n:-1\n> TIME; GETRANGE k 0 511; PTTL k", NULL},
        {'A', 0, SET_LEFT "nil\n:-2", "busy 0"},
        {'A', 0, SET_LEFT "nil\n" NOPERM, "busy"},
        {'A', 0, SET_LEFT "nil\n+OK", BROKEN},
        {'A', 0, SET_LEFT "+OK\n:-3", BROKEN},
        {'A', 0, SET_LEFT "-OOM x\n:5", "full: OOM x"},
        {'A', 0, SET_LEFT SYNTAX ":5\n> EVAL text:acquire 1 k T 1000; PTTL k",
            NULL},
        {'A', 0, SET_LEFT SYNTAX "+OK", BROKEN},
    };

    (void)state;
    PLAY(rows);
}

/* PX is the longer one of what is asked and what is left; a key without an
 * end keeps having none. */
static void set_ifeq_never_shortens(void **state)
{
    static const struct row rows[] = {
        {'e', 2, ASK ":0\n" SET_IFEQ "+OK", "mine 1000"},
        {'e', 2, ASK ":999\n" SET_IFEQ "+OK", "mine 1000"},
        {'e', 2, ASK ":1000\n" SET_IFEQ "+OK", "mine 1000"},
        {'e', 2, ASK ":1001\n> SET k T IFEQ T PX 1001\n+OK", "mine 1001"},
        {'e', 2, ASK ":4294967296\n> SET k T IFEQ T PX 4294967296\n+OK",
            "mine 4294967296"},
        {'e', 2, ASK ":-1\n> SET k T IFEQ T KEEPTTL\n+OK", "mine for ever"},
        {'e', 2, ASK ":-1\n> SET k T IFEQ T KEEPTTL\nnil", "not mine"},
        {'e', 2, ASK ":-2\n" SET_IFEQ "nil", "not mine"},
        {'e', 2, ASK ":-2\n" SET_IFEQ "+OK", "mine 1000"},
    };

    (void)state;
    PLAY(rows);
}

/* A SET of another extend may come before it, so it sends no less than the most
 * that any may have asked for. */
static void set_ifeq_outlasts_other_extends(void **state)
{
    (void)state;
    begin('e', 2);
    verb.most_ttl_ms = 60000;
    play(ASK ":5\n> SET k T IFEQ T PX 60000\n+OK", "mine 60000");
    begin('e', 2);
    verb.most_ttl_ms = 60000;
    play(ASK ":70000\n> SET k T IFEQ T PX 70000\n+OK", "mine 70000");
    begin('e', 2);
    verb.most_ttl_ms = 60000;
    play(ASK ":-1\n> SET k T IFEQ T KEEPTTL\n+OK", "mine for ever");
}

static void set_ifeq(void **state)
{
    static const struct row rows[] = {
        {'e', 2, ASK ":5\n" SET_IFEQ "nil", "not mine"},
        {'e', 2, ASK ":5\n" SET_IFEQ "+QUEUED", BROKEN},
        {'e', 2, ASK ":5\n" SET_IFEQ "$OK", BROKEN},
        {'e', 2, ASK ":5\n" SET_IFEQ ":1", BROKEN},
        {'e', 2, ASK ":5\n" SET_IFEQ "[]", BROKEN},
        {'e', 2, ASK ":5\n" SET_IFEQ WRONGTYPE,
            "not mine: WRONGTYPE Operation against a key"},
        {'e', 2, ASK ":5\n" SET_IFEQ "-OOM x", "full: OOM x"},
        {'e', 2, ASK ":5\n" SET_IFEQ "-ERR strange",
            "server, unsure: ERR strange"},
        {'e', 2, ASK ":5\n" SET_IFEQ SYNTAX "> EVALSHA sha:extend 1 k T 1000",
            NULL},
        {'e', 2, ASK ":5\n" SET_IFEQ NOPERM "> EVALSHA sha:extend 1 k T 1000",
            NULL},
        {'e', 2, ASK "+OK", BROKEN},
        {'e', 2, ASK "nil", BROKEN},
        {'e', 2, ASK "$5", BROKEN},
        {'e', 2, ASK "[:5]", BROKEN},
        {'e', 2, ASK ":-3", BROKEN},
        {'e', 2, ASK "-LOADING x", "retry: LOADING x"},
        {'e', 2, ASK UNKNOWN "> EVALSHA sha:extend 1 k T 1000", NULL},
        {'e', 2, ASK NOPERM "> EVALSHA sha:extend 1 k T 1000", NULL},
    };

    (void)state;
    PLAY(rows);
}

/* The rest of min_hold_ms: one command, which may shorten the TTL. */
static void set_ifeq_keeps_the_rest(void **state)
{
    static const struct row rows[] = {
        {'k', 2, SET_IFEQ "+OK", "mine"},
        {'k', 2, SET_IFEQ "nil", "not mine"},
        {'k', 2, SET_IFEQ "+QUEUED", BROKEN},
        {'k', 2, SET_IFEQ "$OK", BROKEN},
        {'k', 2, SET_IFEQ ":1", BROKEN},
        {'k', 2, SET_IFEQ "[]", BROKEN},
        {'k', 2, SET_IFEQ WRONGTYPE,
            "not mine: WRONGTYPE Operation against a key"},
        {'k', 2, SET_IFEQ "-OOM x", "full: OOM x"},
        {'k', 2, SET_IFEQ "-LOADING x", "retry: LOADING x"},
        {'k', 2, SET_IFEQ "-ERR strange", "server, unsure: ERR strange"},
        {'k', 2, SET_IFEQ SYNTAX "> EVALSHA sha:keep 1 k T 1000", NULL},
        {'k', 2, SET_IFEQ NOPERM "> EVALSHA sha:keep 1 k T 1000", NULL},
    };

    (void)state;
    PLAY(rows);
    begin('k', 2);
    verb.most_ttl_ms = 60000; /* of the last extend */
    play(SET_IFEQ "+OK", "mine");
}

static void compare_and_delete(void **state)
{
    static const struct row rows[] = {
        {'r', 1, DELEX ":1", "mine"},
        {'r', 1, DELEX ":0", "not mine"},
        {'r', 1, DELEX ":2", BROKEN},
        {'r', 1, DELEX ":-1", BROKEN},
        {'r', 1, DELEX "+OK", BROKEN},
        {'r', 1, DELEX "nil", BROKEN},
        {'r', 1, DELEX "$1", BROKEN},
        {'r', 1, DELEX "[:1]", BROKEN},
        {'r', 1,
            DELEX "-ERR Key should be of string type if conditions are "
                  "specified",
            "not mine: ERR Key should be of string type if conditions are "
            "specified"},
        {'r', 1, DELEX "-READONLY x", "elsewhere: READONLY x"},
        {'r', 1, DELEX "-ERR strange", "server, unsure: ERR strange"},
        {'r', 1, DELEX UNKNOWN DELIFEQ, NULL},
        {'r', 1, DELEX NOPERM DELIFEQ, NULL},
        {'r', 2, DELIFEQ ":1", "mine"},
        {'r', 2, DELIFEQ ":0", "not mine"},
        {'r', 2, DELIFEQ ":2", BROKEN},
        {'r', 2, DELIFEQ "+OK", BROKEN},
        {'r', 2, DELIFEQ "nil", BROKEN},
        {'r', 2, DELIFEQ WRONGTYPE,
            "not mine: WRONGTYPE Operation against a key"},
        {'r', 2, DELIFEQ "-MASTERDOWN x", "elsewhere: MASTERDOWN x"},
        {'r', 2,
            DELIFEQ UNKNOWN
            "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI",
            NULL},
        {'r', 2,
            DELIFEQ NOPERM
            "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI",
            NULL},
    };

    (void)state;
    PLAY(rows);
}

/* DELEX with a key alone is DEL: whatever the token, the condition stands. */
static void the_condition_is_never_left_out(void **state)
{
    static char longest[512];
    const struct slice tokens[] = {
        {NULL, 0}, {"", 0}, {"\0", 1}, {longest, sizeof(longest)}};

    (void)state;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        for (unsigned strategy = 1; strategy <= 2; strategy++) {
            struct buf out = {0};
            struct resp_command c;
            begin('r', strategy);
            verb.token = tokens[i];
            assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
            assert_int_equal(
                resp_parse(buf_head(&out), buf_len(&out), &c), buf_len(&out));
            assert_int_equal(c.count, strategy == 1 ? 4 : 3);
            assert_true(resp_is(&c, 0, strategy == 1 ? "DELEX" : "DELIFEQ"));
            assert_true(strategy == 2 || resp_is(&c, 2, "IFEQ"));
            struct slice last = {
                c.arg[c.count - 1].data, c.arg[c.count - 1].len};
            assert_true(slice_equal(last, tokens[i]));
            buf_free(&out);
        }
    }
}

static void a_value_is_read(void **state)
{
    static const struct row rows[] = {
        {'i', 1, READ ":77\n$other\n:1", "seen 'other' 77"},
        {'i', 1, READ ":0\n$other\n:1", "seen 'other' 0"},
        {'i', 1, READ ":-1\n$other\n:1", "seen 'other' for ever"},
        {'i', 1, READ ":-2\n$other\n:1", "seen 'other' 0"},
        {'i', 1, READ ":5\n$\n:1", "seen '' 5"},
        {'i', 1, READ ":-2\n$\n:0", "free"},
        {'i', 1, READ ":-1\n$\n:0", "free"}, /* before 2.8 */
        {'I', 1, READ ":77\n$T\n:1", "mine 77"},
        {'I', 1, READ ":-1\n$T\n:1", "mine for ever"},
        {'I', 1, READ ":77\n$T@a\n:1", "not mine"},
        {'I', 1, READ ":77\n$\n:1", "not mine"},
        {'I', 1, READ ":-2\n$\n:0", "not mine"},
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
        {'i', 1, READ "nil\n$other\n:1", BROKEN},
        {'i', 1, READ ":-3\n$other\n:1", BROKEN},
        {'i', 1, READ ":5\nnil\n:1", BROKEN},
        {'i', 1, READ ":5\n+other\n:1", BROKEN},
        {'i', 1, READ ":5\n:7\n:1", BROKEN},
        {'i', 1, READ ":5\n[$other]\n:1", BROKEN},
        {'I', 1, READ ":5\n+T\n:1", BROKEN},
        {'i', 1, READ ":5\n$other\n+OK", BROKEN},
        {'i', 1, READ ":5\n$other\nnil", BROKEN},
        {'I', 1, READ ":5\n$T\n$1", BROKEN},
        /* What was broken stays broken. */
        {'i', 1, READ "+OK\n" NOPERM NOPERM, BROKEN},
        {'i', 1, READ WRONGTYPE "$\n:1",
            "wrong type: WRONGTYPE Operation against a key"},
        {'i', 1, READ ":5\n" WRONGTYPE ":1",
            "wrong type: WRONGTYPE Operation against a key"},
        {'I', 1, READ ":5\n" WRONGTYPE ":1",
            "not mine: WRONGTYPE Operation against a key"},
        {'i', 1, READ "-LOADING x\n$other\n:1", "retry: LOADING x"},
        {'i', 1, READ "-LOADING x\n-READONLY y\n:1", "retry: LOADING x"},
        {'i', 1, READ ":5\n-LOADING x\n:1", "retry: LOADING x"},
        {'i', 1, READ ":5\n-LOADING x\n:0", "retry: LOADING x"},
        {'i', 1, READ NOPERM "$other\n:1\n> EVALSHA sha:inspect 1 k", NULL},
        {'i', 1, READ ":5\n" NOPERM ":0\n> EVALSHA sha:inspect 1 k", NULL},
    };

    (void)state;
    PLAY(rows);
}

/* An error is never yes, whatever else was read. */
static void no_value_without_all_three_answers(void **state)
{
    static const char *const errors[] = {"-LOADING x\n", "-READONLY x\n",
        "-OOM x\n", "-ERR strange\n", WRONGTYPE, NOPERM, UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        for (unsigned place = 0; place < 3; place++) {
            static const char *const good[] = {":77", "$T", ":1"};
            enum exchange_next next = EXCHANGE_WAIT;
            char line[64];
            snprintf(line, sizeof(line), "%.*s", (int)strcspn(errors[i], "\n"),
                errors[i]);
            begin('I', 1);
            sends();
            for (unsigned reply = 0; reply < 3; reply++) {
                assert_int_equal(next, EXCHANGE_WAIT);
                next = answer(reply == place ? line : good[reply]);
            }
            assert_int_not_equal(next, EXCHANGE_WAIT);
            dialog = errors[i];
            check(next == EXCHANGE_AGAIN || x.outcome.kind != OUTCOME_MINE,
                outcome(), "not mine");
        }
    }
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

static bool begin_native(size_t number)
{
    static const struct {
        char verb;
        unsigned char strategy;
    } steps[] = {{'a', 0}, {'A', 0}, {'A', 1}, {'e', 1}, {'e', 2}, {'r', 0},
        {'r', 1}, {'r', 2}, {'r', 3}, {'i', 1}, {'k', 2}};
    if (number == sizeof(steps) / sizeof(steps[0]))
        return false;
    begin(steps[number].verb, steps[number].strategy);
    return true;
}

static void without_memory_nothing_is_sent(void **state)
{
    (void)state;
    all_or_nothing(begin_native);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_nx),
        cmocka_unit_test(set_ifeq_never_shortens),
        cmocka_unit_test(set_ifeq_outlasts_other_extends),
        cmocka_unit_test(set_ifeq),
        cmocka_unit_test(set_ifeq_keeps_the_rest),
        cmocka_unit_test(compare_and_delete),
        cmocka_unit_test(the_condition_is_never_left_out),
        cmocka_unit_test(a_value_is_read),
        cmocka_unit_test(a_key_that_ends_meanwhile_has_no_value),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(no_value_without_all_three_answers),
        cmocka_unit_test(a_long_value_is_kept_to_512_bytes),
        cmocka_unit_test(a_value_without_memory_is_a_fault),
        cmocka_unit_test(words_without_memory_change_no_fault),
        cmocka_unit_test(without_memory_nothing_is_sent),
    };
    return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
