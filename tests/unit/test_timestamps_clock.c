/* SPDX-License-Identifier: MIT */
/*
 * The server's clock, as TIME says it or the ttl of a key: the true time lies
 * within what is believed, and what may be no clock is none.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define LEARN "> TIME; GETRANGE k 0 511\n"
#define PROBE                                                                  \
    "> SETEX k:clock:T 60 1; EXPIREAT k:clock:T 3800000000; "                  \
    "TTL k:clock:T; DEL k:clock:T\n"
#define SET "> SETNX k 2000000003_T; TIME; TTL k; GETRANGE k 0 511\n"
#define DENIED "no permission: NOPERM this user may not"
#define NO_CLOCK "retry: TRYAGAIN the server's clock is not set"
#define DISTURBED "retry: TRYAGAIN the clock's key was changed meanwhile"

/* On a new connection. */
static void begin_unknown(char letter, unsigned strategy)
{
    begin_stamped(letter, strategy);
    dialect.stamps.clock.known = dialect.stamps.learnt = dialect.stamps.timed =
        false;
}

static void assert_within(int64_t server_ms)
{
    assert_true(
        server_clock_low(&dialect.stamps.clock, dialect.now) <= server_ms);
    assert_true(
        server_clock_high(&dialect.stamps.clock, dialect.now) >= server_ms);
}

/* ----------------------------------------------------------------- believed */

static void its_doubt_grows(void **state)
{
    struct server_clock c = {0};

    (void)state;
    assert_false(server_clock_fresh(&c, OUR_NOW));
    server_clock_learn(&c, OUR_NOW - 40000000, OUR_NOW, NOW_MS, 1);
    for (int ms = 0; ms <= 40; ms += 20) { /* to and fro */
        assert_true(server_clock_low(&c, OUR_NOW) <= NOW_MS + ms);
        assert_true(server_clock_high(&c, OUR_NOW) >= NOW_MS + ms);
    }
    assert_in_range(
        server_clock_high(&c, OUR_NOW) - server_clock_low(&c, OUR_NOW), 40, 50);
    uint64_t later = OUR_NOW + UINT64_C(9000000000);
    assert_true(server_clock_fresh(&c, later));
    assert_true(server_clock_low(&c, later) <= NOW_MS + 9000 - 90);
    assert_true(server_clock_high(&c, later) >= NOW_MS + 9000 + 40 + 90);
    assert_false(server_clock_fresh(&c, OUR_NOW + UINT64_C(10000000000)));
}

/* ------------------------------------------------------------------ by TIME */

static void told(void **state)
{
    (void)state;
    begin_unknown('a', 2);
    play(LEARN "@40\n[$2000000000 $123456]\n$\n" SET, NULL);
    assert_within(NOW_MS + 123);
    assert_within(NOW_MS + 123 + 40);
    answer(":1");
    answer("[$2000000000 $123456]");
    answer(":-1");
    assert_int_equal(answer("$x"), EXCHANGE_DONE);
    assert_string_equal(outcome(), "granted");
    assert_true(dialect.stamps.timed && dialect.stamps.learnt &&
                !dialect.stamps.substr);
    /* For 10 s it does without a flight of its own, which goes along. */
    exchange_begin(&x, &verb, NULL);
    dialect.now += UINT64_C(9000000000);
    play("> SETNX k 2000000012_T; TIME; TTL k; GETRANGE k 0 511\n"
         ":1\n[$2000000009 $123456]\n:-1\n$x",
        "granted");
    exchange_begin(&x, &verb, NULL);
    dialect.now += UINT64_C(10000000000);
    play(LEARN, NULL);
}

/* What is read along with it says how a value is read, and nothing else. */
static void learning(void **state)
{
    static const struct row rows[] = {
        {'i', 2,
            LEARN "[$2000000000 $0]\n" UNKNOWN
                  "> SUBSTR k 0 511; TTL k; EXISTS k",
            NULL},
        {'r', 3, LEARN "[$2000000000 $0]\n" UNKNOWN "> SUBSTR k 0 511", NULL},
        {'a', 2, LEARN "[$2000000000 $0]\n-LOADING x", "retry: LOADING x"},
        {'a', 2, LEARN "[$2000000000 $0]\n-ERR strange",
            "server, unsure: ERR strange"},
        {'i', 2, LEARN "[$2000000000 $0]\n" NOPERM, DENIED},
        {'a', 2, LEARN "-READONLY x\n$", "elsewhere: READONLY x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_unknown(rows[i].verb, rows[i].strategy);
        play(rows[i].dialog, rows[i].outcome);
        if (rows[i].outcome)
            assert_false(dialect.stamps.learnt);
    }
}

static void what_is_no_time(void **state)
{
    static const char *const clocks[] = {"[$2000000000 $x]", "[$20000x0000 $0]",
        "[$2000000000 $0 $0]", "[$2000000000 $1000000000]",
        "[$2000000000000 $0]", "nil"};
    static const char *const unset[] = {
        "[$0 $0]", "[$5 $0]", "[$99000000001 $0]"};

    (void)state;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        begin_unknown('a', 2);
        play(LEARN, NULL);
        assert_int_equal(answer(clocks[i]), EXCHANGE_WAIT);
        assert_int_equal(answer("$"), EXCHANGE_DONE);
        check(strcmp(outcome(), BROKEN) == 0, outcome(), clocks[i]);
        assert_false(dialect.stamps.clock.known);
    }
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++) {
        begin_unknown('a', 2);
        play(LEARN, NULL);
        assert_int_equal(answer(unset[i]), EXCHANGE_WAIT);
        assert_int_equal(answer("$"), EXCHANGE_DONE);
        check(strcmp(outcome(), NO_CLOCK) == 0, outcome(), unset[i]);
        assert_false(dialect.stamps.clock.known);
    }
}

/* ------------------------------------------------------ by the ttl of a key */

static void probed(void **state)
{
    (void)state;
    begin_unknown('a', 2);
    play(LEARN UNKNOWN
        "$\n" PROBE "+OK\n:1\n:1800000000\n:1\n"
        "> SETNX k 2000000004_T; TTL k; GETRANGE k 0 511\n:1\n:-1\n$x",
        "granted");
    for (int ms = -500; ms < 1000; ms += 499) /* old and new rounding */
        assert_within(NOW_MS + ms);
    assert_false(dialect.stamps.timed);
    /* It is asked again after a while, and by the same way. */
    exchange_begin(&x, &verb, NULL);
    dialect.now += UINT64_C(11000000000);
    play(PROBE, NULL);
    /* Who is not allowed TIME has got this way, too. */
    begin_unknown('a', 2);
    play(LEARN NOPERM "$\n" PROBE, NULL);
    /* A look has no token to make the key its own. */
    begin_unknown('i', 2);
    play(LEARN UNKNOWN "$\n"
                       "> SETEX k:clock:100000000000 60 1; "
                       "EXPIREAT k:clock:100000000000 3800000000; "
                       "TTL k:clock:100000000000; DEL k:clock:100000000000\n"
                       "+OK\n:1\n:1800000000\n:1\n"
                       "> GETRANGE k 0 511; TTL k; EXISTS k",
        NULL);
}

/* Two that ask by one key, or a refusal: what comes of that is no clock. */
static void probes_that_fail(void **state)
{
    static const struct row rows[] = {
        {'a', 2, PROBE "+OK\n:1\n:60\n:1", DISTURBED},
        {'a', 2, PROBE "+OK\n:1\n:3800000000\n:1", NO_CLOCK},
        {'a', 2, PROBE "+OK\n:1\n$1800000000\n:1", BROKEN},
        {'a', 2, PROBE "-OOM x\n:0\n:-2\n:0", "full: OOM x"},
        {'a', 2, PROBE "+OK\n-LOADING x\n:60\n:1", "retry: LOADING x"},
        {'a', 2, PROBE "+OK\n:1\n-LOADING x\n:1", "retry: LOADING x"},
        {'i', 2,
            "> SETEX k:clock:100000000000 60 1; "
            "EXPIREAT k:clock:100000000000 3800000000; "
            "TTL k:clock:100000000000; DEL k:clock:100000000000\n" NOPERM NOPERM
                NOPERM NOPERM,
            DENIED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_unknown(rows[i].verb, rows[i].strategy);
        dialect.stamps.learnt = true;
        play(rows[i].dialog, rows[i].outcome);
        assert_false(dialect.stamps.clock.known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_doubt_grows),
        cmocka_unit_test(told),
        cmocka_unit_test(learning),
        cmocka_unit_test(what_is_no_time),
        cmocka_unit_test(probed),
        cmocka_unit_test(probes_that_fail),
    };
    return cmocka_run_group_tests_name("timestamps_clock", tests, NULL, NULL);
}
