/* SPDX-License-Identifier: MIT */
/*
 * Where scripts were refused an acquire asks first whether there is any other
 * way to end a lock. It asks once, writes nothing, and takes for a refusal only
 * what is one of the command.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define ASKS "> EVALSHA sha:release 0; EVAL return\\x201 0; WATCH T\n"
#define MAY_NOT "-NOPERM this user has no permissions to run the 'x' command\n"
#define KEY "-NOPERM No permissions to access a key\n"
#define NO_SCRIPT "-NOSCRIPT No matching script.\n"
#define SETS "> SET k T NX PX 1000\n+OK"
#define WORDS                                                                  \
    "neither scripts (+evalsha +eval) nor transactions (+watch +multi +exec "  \
    "+discard) are allowed: a lock could be neither extended nor released"

static void play_unverified(const struct row *row, size_t count)
{
    for (; count > 0; count--, row++) {
        begin(row->verb, row->strategy);
        dialect.scripts_unverified = true;
        play(row->dialog, row->outcome);
        bool refused = strcmp(row->outcome, "granted") != 0;
        assert_int_equal(dialect.scripts_unverified, refused);
    }
}

#define PLAY_UNVERIFIED(rows)                                                  \
    play_unverified(rows, sizeof(rows) / sizeof((rows)[0]))

static void one_way_is_enough(void **state)
{
    static const struct row rows[] = {
        {'a', 0, ASKS MAY_NOT MAY_NOT "+OK\n" SETS, "granted"},
        {'a', 0, ASKS ":0\n" MAY_NOT MAY_NOT SETS, "granted"},
        {'a', 0, ASKS NO_SCRIPT ":1\n" MAY_NOT SETS, "granted"},
        /* Another key might be allowed; and what passes is no refusal. */
        {'a', 0, ASKS MAY_NOT MAY_NOT KEY SETS, "granted"},
        {'a', 0, ASKS KEY KEY MAY_NOT SETS, "granted"},
        {'a', 0, ASKS MAY_NOT MAY_NOT "-LOADING x\n" SETS, "granted"},
        {'a', 0, ASKS MAY_NOT MAY_NOT "-MOVED 1 a:1\n" SETS, "granted"},
    };

    (void)state;
    PLAY_UNVERIFIED(rows);
}

static void without_any_it_is_refused(void **state)
{
    static const struct row rows[] = {
        {'a', 0, ASKS MAY_NOT MAY_NOT MAY_NOT, "no permission: NOPERM " WORDS},
        {'A', 0, ASKS NO_SCRIPT MAY_NOT MAY_NOT,
            "no permission: NOPERM " WORDS},
        /* EVAL is only a way out of NOSCRIPT. */
        {'a', 0, ASKS MAY_NOT ":1\n" MAY_NOT, "no permission: NOPERM " WORDS},
        {'a', 0, ASKS UNKNOWN UNKNOWN UNKNOWN,
            "unsupported: ERR unknown command: neither scripts (EVALSHA, EVAL) "
            "nor transactions (WATCH): a lock could be neither extended nor "
            "released"},
    };

    (void)state;
    PLAY_UNVERIFIED(rows);
}

/* Only then, and only where it matters. */
static void others_are_not_asked(void **state)
{
    (void)state;
    begin('a', 0);
    play(SETS, "granted");
    begin('r', 0);
    dialect.scripts_unverified = true;
    play("> EVALSHA sha:release 1 k T\n:1", "mine");
    assert_true(dialect.scripts_unverified);
    begin('i', 0);
    dialect.scripts_unverified = true;
    play("> EVALSHA sha:inspect 1 k\n[]", "free");
    /* The next one on the connection is asked nothing. */
    begin('a', 0);
    dialect.scripts_unverified = true;
    play(ASKS MAY_NOT MAY_NOT "+OK\n" SETS, "granted");
    exchange_begin(&x, &verb, NULL);
    play(SETS, "granted");
}

/* What a connection shows when a lock is to be ended. */
static void learnt_from_a_refusal(void **state)
{
    (void)state;
    begin('r', 0);
    play("> EVALSHA sha:release 1 k T\n" NOPERM
         "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n" NOPERM NOPERM
             NOPERM NOPERM NOPERM "> TIME; GETRANGE k 0 511\n" NOPERM NOPERM,
        "no permission: NOPERM this user may not");
    assert_true(dialect.scripts_unverified);
}

/* By order there are other ways; but it is told which. */
static void timestamps_by_order(void **state)
{
    struct text text;
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin_stamped('a', 2);
        dialect.scripts_unverified = true;
        play(i == 0 ? "> WATCH T\n+OK\n> SETNX k 2000000003_T; TIME; TTL k; "
                      "GETRANGE k 0 511"
                    : "> WATCH T\n" MAY_NOT "> SETNX k 2000000003_T; TIME; "
                      "TTL k; GETRANGE k 0 511",
            NULL);
        assert_false(dialect.scripts_unverified);
        text_clear(&text);
        strategies_describe(&dialect, &text);
        assert_contains(text.data, i == 0 ? "weaker" : "weakest");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_way_is_enough),
        cmocka_unit_test(without_any_it_is_refused),
        cmocka_unit_test(others_are_not_asked),
        cmocka_unit_test(learnt_from_a_refusal),
        cmocka_unit_test(timestamps_by_order),
    };
    return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
