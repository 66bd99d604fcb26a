/* SPDX-License-Identifier: MIT */
/*
 * After SET NX has met a key without an end: what is replaced is that very
 * value, which is a time, and past by a clock that was read before it was.
 * Whatever cannot be found out leaves the answer "busy".
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define SET "> SET k T NX PX 1000; PTTL k\n"
#define BUSY SET "nil\n:-1\n"
#define LOOK "> TIME; GETRANGE k 0 511; PTTL k\n"
#define NOW "[$2000000000 $500000]\n"
#define OURS "1600000000" BLANKS
#define SCRIPT "> EVAL text:takeover 1 k T 1000 1600000000_T\n"
#define PAST BUSY LOOK NOW "$1600000000_T\n:-1\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; MULTI\n"
#define SETEX "> PSETEX k 1000 T; EXEC\n"
#define DISCARD "> DISCARD\n"
#define BY_WATCH PAST SCRIPT NOPERM WATCH
#define SAME "+OK\n$1600000000_T\n:-1\n+OK\n"
#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\n"

static void play_all(const struct row *row, size_t count, bool interop)
{
    for (; count > 0; count--, row++) {
        begin(row->verb, row->strategy);
        dialect.now = OUR_NOW;
        dialect.interop = interop;
        x.check_at = 0;
        play(row->dialog, row->outcome);
    }
}

#define PLAY_EACH(rows, interop)                                               \
    play_all(rows, sizeof(rows) / sizeof((rows)[0]), interop)

static void once_a_second(void **state)
{
    (void)state;
    begin('A', 0);
    dialect.now = OUR_NOW;
    x.check_at = 0;
    play(BUSY LOOK NOW "$other\n:-1", "busy for ever");
    exchange_restart(&x, &verb, NULL);
    play("@999\n" BUSY, "busy for ever");
    exchange_restart(&x, &verb, NULL);
    play("@1\n" BUSY LOOK NOW "$other\n:-1", "busy for ever");
}

/* Of whatever stands there, what is replaced? */
static void what_stands_there(void **state)
{
    static const struct row never[] = {
        {'A', 0, BUSY LOOK NOW "$other\n:-1", "busy for ever"},
        {'A', 0, BUSY LOOK NOW "$other\n:-1", "busy for ever"},
        /* It is still running: for how long is known now. */
        {'A', 0, BUSY LOOK NOW "$2000000060_T\n:-1", "busy 59500"},
        /* Its key has got an end, or is gone: somebody lives. */
        {'A', 0, BUSY LOOK NOW "$1600000000_T\n:7000", "busy 7000"},
        {'A', 0, BUSY LOOK NOW "$1600000000_T\n:0", "busy 0"},
        {'A', 0, BUSY LOOK NOW "$1600000000_T\n+OK", "busy"},
        {'A', 0, BUSY LOOK NOW "$1600000000_T\nnil", "busy"},
        /* Without a clock nothing is past. */
        {'A', 0, BUSY LOOK NOPERM "$1600000000_T\n:-1", "busy for ever"},
        {'A', 0, BUSY LOOK "[$0 $0]\n$1600000000_T\n:-1", "busy for ever"},
    };
    static const struct row past[] = {
        {'A', 0, PAST SCRIPT, NULL},
        {'A', 0,
            BUSY LOOK NOW "$2000000000_T\n:-1\n"
                          "> EVAL text:takeover 1 k T 1000 2000000000_T",
            NULL},
    };

    (void)state;
    PLAY_EACH(never, false);
    PLAY_EACH(never, true);
    PLAY_EACH(past, false);
    PLAY_EACH(past, true);
}

/* What other programs of the scheme left, only by order. */
static void times_of_others(void **state)
{
    static const struct row without[] = {
        {'A', 0, BUSY LOOK NOW "$1600000000\n:-1", "busy for ever"},
        {'A', 0, BUSY LOOK NOW "$1600000000.5\n:-1", "busy for ever"},
        {'A', 0, BUSY LOOK NOW "$2000000060\n:-1", "busy for ever"},
    };
    static const struct row with[] = {
        {'A', 0,
            BUSY LOOK NOW "$1600000000\n:-1\n"
                          "> EVAL text:takeover 1 k T 1000 1600000000\n+OK",
            "granted"},
        {'A', 0, BUSY LOOK NOW "$2000000060\n:-1", "busy 59500"},
        {'A', 0,
            BUSY LOOK NOW "$1999999999.5\n:-1\n"
                          "> EVAL text:takeover 1 k T 1000 1999999999.5",
            NULL},
        {'A', 0, BUSY LOOK NOW "$2000000000.5\n:-1", "busy 500"},
    };

    (void)state;
    PLAY_EACH(without, false);
    PLAY_EACH(with, true);
}

/* Longer than what is read of it: then it is no time, whatever it begins
 * with. */
static void a_value_that_was_cut(void **state)
{
    struct reply value = {
        .kind = REPLY_STRING, .bytes = slice_of(OURS), .truncated = true};

    (void)state;
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(BUSY LOOK NOW, NULL);
    assert_int_equal(exchange_reply(&x, &value), EXCHANGE_WAIT);
    assert_int_equal(answer(":-1"), EXCHANGE_DONE);
    assert_string_equal(outcome(), "busy for ever");
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(BY_WATCH "+OK\n", NULL);
    assert_int_equal(exchange_reply(&x, &value), EXCHANGE_WAIT);
    assert_int_equal(answer(":-1"), EXCHANGE_WAIT);
    assert_int_equal(answer("+OK"), EXCHANGE_AGAIN);
    play(DISCARD "+OK", "busy");
}

static void by_script(void **state)
{
    static const struct row rows[] = {
        {'A', 0, PAST SCRIPT "+OK", "granted"},
        {'A', 0, PAST SCRIPT "nil", "busy"}, /* it was changed meanwhile */
        {'A', 0, PAST SCRIPT ":1", BROKEN},
        {'A', 0, PAST SCRIPT "-LOADING x", "retry: LOADING x"},
        {'A', 0, PAST SCRIPT "-OOM x", "full: OOM x"},
        {'A', 0, PAST SCRIPT "-READONLY x", "elsewhere: READONLY x"},
        {'A', 0, PAST SCRIPT "-ERR strange", "server, unsure: ERR strange"},
        {'A', 0, PAST SCRIPT NOPERM WATCH, NULL},
    };

    (void)state;
    PLAY_EACH(rows, false);
}

static void by_transaction(void **state)
{
    static const struct row rows[] = {
        {'A', 0, BY_WATCH SAME SETEX "+QUEUED\n[+OK]", "granted"},
        {'A', 0, BY_WATCH SAME SETEX "+QUEUED\n[:1]", BROKEN},
        /* It was changed since the look: then it is another one's. */
        {'A', 0, BY_WATCH "+OK\n$1600000001_T\n:-1\n+OK\n" DISCARD "+OK",
            "busy"},
        {'A', 0, BY_WATCH "+OK\n$1600000000_T\n:5000\n+OK\n" DISCARD "+OK",
            "busy"},
        /* Not allowed: as if nobody had looked. */
        {'A', 0, BY_WATCH NOPERM "$1600000000_T\n:-1\n" NOPERM,
            "busy for ever"},
        {'A', 0, BY_WATCH "+OK\n$1600000000_T\n:-1\n" UNKNOWN, "busy for ever"},
        {'A', 0, BY_WATCH SAME SETEX NOPERM ABORTED, "busy for ever"},
        /* What is wrong with the server is said. */
        {'A', 0, BY_WATCH "-LOADING x\n$1600000000_T\n:-1\n-LOADING x",
            "retry: LOADING x"},
        {'A', 0, BY_WATCH SAME SETEX "-OOM x\n" ABORTED, "full: OOM x"},
        {'A', 0, BY_WATCH SAME SETEX "+QUEUED\n-MISCONF x\n" DISCARD "+OK",
            "refusing: MISCONF x"},
        {'A', 0, BY_WATCH SAME SETEX "+QUEUED\n-ERR strange\n" DISCARD "+OK",
            "server, unsure: ERR strange"},
    };

    (void)state;
    PLAY_EACH(rows, false);
}

/* May it have written the token, and which reply tells? */
static void what_it_may_have_written(void **state)
{
    (void)state;
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(BUSY LOOK, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), -1);
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(PAST SCRIPT, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(BY_WATCH, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), -1);
    assert_ptr_equal(dialect.in_transaction, &x);
    begin('A', 0);
    dialect.now = OUR_NOW;
    play(BY_WATCH SAME SETEX, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), 1);
    assert_true(exchange_opened(&x));
    assert_true(exchange_cancel(&x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_a_second),
        cmocka_unit_test(what_stands_there),
        cmocka_unit_test(times_of_others),
        cmocka_unit_test(a_value_that_was_cut),
        cmocka_unit_test(by_script),
        cmocka_unit_test(by_transaction),
        cmocka_unit_test(what_it_may_have_written),
    };
    return cmocka_run_group_tests_name(
        "timestamps_takeover", tests, NULL, NULL);
}
