/* SPDX-License-Identifier: MIT */
/*
 * Acquiring by timestamps. A value that may still be valid is overwritten only
 * by a late GETSET without WATCH, and what that wrote is not undone. That
 * nothing which changes a key is sent behind other replies is in
 * tests/fuzz/watcher.h.
 */
#include "support/test.h"
#include "unit/strategy_rig.h"
/* clang-format off */

#define LOOK "TIME; TTL k; GETRANGE k 0 511"
#define NOW "[$2000000000 $0]\n"
#define ALMOST "[$1999999999 $999000]\n"
#define NO_END ":-1\n" /* in reply to TTL */
#define SET "> SETNX k 2000000003_T; " LOOK "\n"
#define WAS_SET SET ":1\n" NOW NO_END
#define STANDS SET ":0\n" NOW NO_END
#define HAIR SET ":0\n" ALMOST
#define IS_PAST STANDS "$1600000000\n"
#define WATCH "> WATCH k; " LOOK "; MULTI\n"
#define READS WATCH "+OK\n" NOW NO_END
#define GETSET "> GETSET k 2000000003_T; EXEC\n"
#define DISCARD "> DISCARD\n"
#define STEPPED "TRYAGAIN the server's clock was set meanwhile"
#define NOT_SET "TRYAGAIN the server's clock is not set"
#define BARE_GETSET "> GETSET k 2000000062_T\n" /* as long as anybody's */
#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\n"
#define DENIED "no permission: NOPERM this user may not"

/* ------------------------------------------------------------------ acquire */

static void a_free_name(void **state)
{
    static const struct row rows[] = {
        {'a', 2, WAS_SET "$2000000003_T", "granted"},
        /* SETNX decides, and nothing after it. */
        {'a', 2, WAS_SET "$other", "granted"},
        {'a', 2, SET ":2\n" NOW NO_END "$x", BROKEN},
        {'a', 2, SET "nil\n" NOW NO_END "$x", BROKEN},
        {'a', 2, SET "[:1]\n" NOW NO_END "$x", BROKEN},
        {'a', 2, SET "-OOM x\n" NOW NO_END "$1600000000", "full: OOM x"},
        {'a', 2, SET "-READONLY x\n" NOW NO_END "$1600000000",
            "elsewhere: READONLY x"},
        {'a', 2, SET "-ERR strange\n" NOW NO_END "$1600000000",
            "server, unsure: ERR strange"},
        {'a', 2, SET NOPERM NOW NO_END NOPERM SET NOPERM NOW NO_END NOPERM,
            DENIED},
        {'a', 2, STANDS "-LOADING x", "retry: LOADING x"},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* By TIME, which was asked before; without WATCH by all doubt: 3 ms. */
static void what_stands_there(void **state)
{
    static const struct row rows[] = {
        {'a', 2, HAIR NO_END "$1999999999.2", "busy 1"},
        {'a', 2, STANDS "$2000000000000", "busy for ever"},
        {'a', 2, STANDS "$2000000000\n" WATCH, NULL},
        {'a', 2, STANDS "$1999999998.2\n" WATCH, NULL},
        {'a', 3, STANDS "$2000000000", "busy 3"},
        {'a', 3, STANDS "$x", "busy for ever"},
        /* It went away meanwhile; not for ever. */
        {'a', 2, STANDS "nil\n" WAS_SET "$x", "granted"},
        {'a', 2, STANDS "$\n" STANDS "$\n" STANDS "$", "busy"},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* It is no lock of this scheme, or another program's, which sets times with an
 * end: whatever its value is. */
static void a_key_with_an_end(void **state)
{
    static const struct row rows[] = {
        {'a', 2, SET ":0\n" NOW ":7\n$1600000000", "busy 7000"},
        {'a', 2, SET ":0\n" NOW ":0\n$1600000000", "busy 0"},
        {'a', 2, SET ":0\n" NOW ":7\n$x", "busy 7000"},
        {'a', 2, SET ":0\n" NOW ":-2\n$1600000000\n" WATCH, NULL},
        /* SETNX has set it: an end is not ours, and says nothing. */
        {'a', 2, SET ":1\n" NOW ":7\n$x", "granted"},
        /* It came between. */
        {'a', 2, IS_PAST WATCH "+OK\n" NOW ":7\n$1600000000\n+OK\n" DISCARD
            "+OK", "busy 7000"},
        {'a', 2, IS_PAST WATCH "+OK\n" NOW "$7\n$1600000000\n+OK\n" DISCARD
            "+OK", BROKEN},
        {'a', 2, IS_PAST WATCH "+OK\n" NOW "-LOADING x\n$1600000000\n+OK\n"
            DISCARD "+OK", "retry: LOADING x"},
    };

    (void)state;
    PLAY_STAMPED(rows);
    begin_stamped('a', 2); /* without TIME */
    dialect.stamps.timed = false;
    play("> SETNX k 2000000003_T; TTL k; GETRANGE k 0 511\n:0\n:7\n"
         "$1600000000", "busy 7000");
    begin_stamped('a', 2);
    dialect.stamps.timed = false;
    play("> SETNX k 2000000003_T; TTL k; GETRANGE k 0 511\n:0\n:-1\n"
         "$1600000000\n> WATCH k; TTL k; GETRANGE k 0 511; MULTI\n+OK\n:7\n"
         "$1600000000\n+OK\n" DISCARD "+OK", "busy 7000");
}

/* After it was learnt: a time that was written by it may be too early, one
 * that was read may not be past. */
static void the_clock_is_set(void **state)
{
    static const struct row rows[] = {
        {'a', 2, SET ":1\n[$2000000002 $0]\n" NO_END "$x", "granted"},
        {'a', 2, SET ":1\n[$1900000000 $0]\n" NO_END "$x", "granted"},
        {'a', 2, SET ":1\n[$2000000002 $1000]\n" NO_END "$x",
            "retry, unsure: " STEPPED},
        {'a', 2, SET ":1\n[$2100000000 $0]\n" NO_END "-LOADING x",
            "retry, unsure: " STEPPED},
        /* What it says is known from now on. */
        {'a', 2, SET ":0\n[$2000000100 $0]\n" NO_END "$2000000100\n"
            WATCH "+OK\n[$2000000100 $0]\n" NO_END "$2000000100\n+OK\n"
            "> GETSET k 2000000103_T; EXEC\n+QUEUED\n[$2000000100]",
            "granted"},
        {'a', 3, SET ":0\n[$1999999990 $0]\n" NO_END "$1999999999",
            "busy 9003"},
        /* Before the take-over. */
        {'a', 2, STANDS "$1999999999\n" WATCH "+OK\n[$1999999990 $0]\n"
            NO_END "$1999999999\n+OK\n" DISCARD "+OK", "busy 9000"},
        /* It does not tell. */
        {'a', 2, SET ":0\n[$5 $0]\n" NO_END "$1600000000",
            "retry: " NOT_SET},
        {'a', 2, SET ":1\nnil\n" NO_END "$x", BROKEN},
        {'a', 2, SET ":0\n" NOPERM NO_END "$2000000001", "busy 1003"},
        {'a', 2, SET ":0\n" NOPERM NO_END "$1600000000\n"
            "> WATCH k; TTL k; GETRANGE k 0 511; MULTI\n", NULL},
    };

    (void)state;
    PLAY_STAMPED(rows);
    begin_stamped('a', 2); /* undone, and tried again by the new clock */
    play(SET ":1\n[$2000000002 $1000]\n" NO_END "$x",
        "retry, unsure: " STEPPED);
    assert_int_equal(x.written, WRITTEN_END);
    exchange_restart(&x, &verb, NULL);
    play("> SETNX k 2000000005_T; " LOOK "\n:1\n[$2000000002 $2000]\n" NO_END
         "$x", "granted");
}

static void taking_over(void **state)
{
    static const struct row rows[] = {
        {'a', 2, IS_PAST READS "$1600000000\n+OK\n" GETSET
            "+QUEUED\n[$1600000000]", "granted"},
        /* Another one that is past, too. */
        {'a', 2, IS_PAST READS "$1600000001\n+OK\n" GETSET
            "+QUEUED\n[$1600000001]", "granted"},
        /* Somebody was faster: what is read under WATCH decides. */
        {'a', 2, IS_PAST READS "$2000000023\n+OK\n" DISCARD "+OK",
            "busy 23000"},
        {'a', 2, IS_PAST READS "$T\n+OK\n" DISCARD "+OK",
            "busy for ever"},
        {'a', 2, IS_PAST READS "$\n+OK\n" DISCARD "+OK", "busy 0"},
        {'a', 2, IS_PAST READS "nil\n+OK\n" DISCARD "+OK", "busy 0"},
        {'a', 2, IS_PAST READS "$1600000000\n+OK\n" GETSET
            "+QUEUED\n[:1]", BROKEN},
        {'a', 2, IS_PAST READS "$1600000000\n+OK\n" GETSET "+QUEUED\n"
            ABORTED,
            "retry: EXECABORT Transaction discarded because of previous "
            "errors."},
        {'a', 2, IS_PAST READS "$1600000000\n+OK\n" GETSET
            "-OOM x\n" ABORTED, "full: OOM x"},
        {'a', 2, IS_PAST READS "$1600000000\n+OK\n" GETSET
            "+QUEUED\n-MISCONF x\n" DISCARD "+OK", "refusing: MISCONF x"},
        /* Refused: without WATCH, from the start. */
        {'a', 2, IS_PAST WATCH NOPERM NOW NO_END "$1600000000\n" NOPERM SET,
            NULL},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* Without orders (2.4) there is no bare strategy behind it. */
static void without_orders_never_bare(void **state)
{
    (void)state;
    begin_stamped('a', 2);
    dialect.ttl_in_values = false;
    play(IS_PAST WATCH NOPERM NOW NO_END "$1600000000\n" NOPERM
         "> SET k T NX PX 1000\n" UNKNOWN
         "> EVAL text:acquire 1 k T 1000\n" UNKNOWN, DENIED);
    begin_stamped('r', 2);
    dialect.ttl_in_values = false;
    play(WATCH NOPERM NOW NO_END "$2000000010_T\n" NOPERM, DENIED);
    begin_stamped('e', 2);
    dialect.ttl_in_values = false;
    play(WATCH NOPERM NOW NO_END "$2000000010_T\n" NOPERM, DENIED);
}

static void taking_over_without_watch(void **state)
{
    static const struct row rows[] = {
        {'a', 3, IS_PAST BARE_GETSET "nil", "granted"},
        {'a', 3, IS_PAST BARE_GETSET "$",
            "busy, unsure, never undone for ever"},
        /* Past when the answer comes; it has to have been before. */
        {'a', 3, IS_PAST BARE_GETSET "@5000\n$2000000001",
            "busy, unsure, never undone 1003"},
        {'a', 3, IS_PAST BARE_GETSET ":1",
            "not redis, unsure, never undone: expected"},
        {'a', 3, IS_PAST BARE_GETSET "-ERR strange",
            "server, unsure, never undone: ERR strange"},
        /* Nothing was done: what the next attempt writes is its own. */
        {'a', 3, IS_PAST BARE_GETSET "-OOM x", "full: OOM x"},
        {'a', 3, IS_PAST BARE_GETSET "-READONLY x", "elsewhere: READONLY x"},
        {'a', 3, IS_PAST BARE_GETSET NOPERM STANDS "$x", "busy for ever"},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* Given up before its answer: what it may have written is another one's to
 * wait for, and not to be deleted. */
static void a_bare_getset_on_its_way(void **state)
{
    struct exchange heir = {0};

    (void)state;
    begin_stamped('a', 3);
    play(IS_PAST BARE_GETSET, NULL);
    assert_int_equal(x.written, WRITTEN_OVER);
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
    exchange_move(&x, &heir, &verb);
    assert_int_equal(heir.written, WRITTEN_OVER);
    /* Another attempt on another connection begins anew. */
    dialect_begin(&dialect);
    dialect.preferred[VERB_ACQUIRE] = 3;
    dialect.stamps.learnt = dialect.stamps.timed = true;
    server_clock_learn(&dialect.stamps.clock, OUR_NOW, OUR_NOW, NOW_MS, 1);
    dialect.now = OUR_NOW;
    play(WAS_SET "$x", "granted");
}

static void which_reply_tells_what_was_written(void **state)
{
    (void)state;
    begin_stamped('a', 2);
    play(SET, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
    assert_int_equal(exchange_deciding_reply(&x, true), -1);
    begin_stamped('a', 2);
    play(IS_PAST WATCH, NULL);
    assert_ptr_equal(dialect.in_transaction, &x);
    assert_int_equal(exchange_deciding_reply(&x, false), -1);
    begin_stamped('a', 2);
    play(IS_PAST READS "$1600000000\n+OK\n" GETSET, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), 1); /* EXEC's */
    assert_int_equal(answer("+QUEUED"), EXCHANGE_WAIT);
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
    begin_stamped('a', 2);
    dialect.stamps.learnt = false;
    play("> TIME; GETRANGE k 0 511\n", NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_name),
        cmocka_unit_test(what_stands_there),
        cmocka_unit_test(a_key_with_an_end),
        cmocka_unit_test(the_clock_is_set),
        cmocka_unit_test(taking_over),
        cmocka_unit_test(without_orders_never_bare),
        cmocka_unit_test(taking_over_without_watch),
        cmocka_unit_test(a_bare_getset_on_its_way),
        cmocka_unit_test(which_reply_tells_what_was_written),
    };
    return cmocka_run_group_tests_name("timestamps_write", tests, NULL, NULL);
}
