/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: what a connection remembers of a refusal, and how a lock is
 * released by who may be in line and by who may be followed. What JOIN and STAY
 * send and what every reply to them means is in tests/fuzz/meaning.h; what the
 * scripts do is tested on real servers, in tests/live/test_line_scripts.c.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define WAITS " 4 k {k}:nxl-l {k}:nxl-w {k}:nxl-g T 1000 c 96 "
#define JOIN "> EVALSHA sha:line_wait" WAITS "1\n"
#define RELEASE "> EVALSHA sha:release 1 k T\n"
#define PLAIN "> EVALSHA sha:release 1 k T -\n"
#define GAP "> EVALSHA sha:release 1 k T ?75\n"
#define FOLLOWED "> EVALSHA sha:release 1 k T +\n"
#define NO_PERMISSION "no permission to wait in line: see docs/acl.md"
#define NOSCRIPT "-NOSCRIPT No matching script.\n"

static void begin_line(enum verb_kind kind)
{
    begin('r', 0);
    verb.kind = kind;
    verb.client = slice_of("c");
    verb.window = 96;
    exchange_begin(&x, &verb, NULL);
}

/* A refusal of the command is remembered for a while. One that may be about
 * this name is not, though it is told to people until a token has joined. A key
 * of another type does not say that the token is not in line. */
static const struct {
    const char *error, *outcome;
    enum fault refused;
    bool lasts;
    const char *why;
} refused[] = {
    {"-NOPERM this user has no permissions to run the 'evalsha' command",
        "no permission: NOPERM this user has no permissions to run the "
        "'evalsha' command",
        FAULT_NO_PERMISSION, true, NO_PERMISSION},
    {"-NOPERM this user has no permissions to access one of the keys used",
        NULL, FAULT_NO_PERMISSION, false, NO_PERMISSION},
    {"-NOPERM No permissions to access a key", NULL, FAULT_NO_PERMISSION, false,
        NO_PERMISSION},
    {"-NOPERM strange words", NULL, FAULT_NO_PERMISSION, false, NO_PERMISSION},
    {"-ERR unknown command 'EVALSHA'",
        "unsupported: ERR unknown command 'EVALSHA'", FAULT_UNSUPPORTED, true,
        "the server cannot run the script of the line"},
    {"-ERR Error running script (call to f_0): @user_script:25: "
     "@user_script: 25: Write commands not allowed after non deterministic "
     "commands",
        NULL, FAULT_UNSUPPORTED, true,
        "the server cannot run the script of the line"},
    {"-ERR The user executing the script can't run this command or "
     "subcommand",
        NULL, FAULT_SCRIPT_DENIED, true, NO_PERMISSION},
    {"-ERR The user executing the script can't access at least one of the "
     "keys mentioned in the command arguments",
        NULL, FAULT_SCRIPT_DENIED, false, NO_PERMISSION},
    {"-ERR ACL failure in script: User u has no permissions to run the "
     "'zadd' command",
        NULL, FAULT_SCRIPT_DENIED, true, NO_PERMISSION},
    {"-ERR ACL failure in script: No permissions to access a key", NULL,
        FAULT_SCRIPT_DENIED, false, NO_PERMISSION},
    {"-WRONGTYPE Operation against a key",
        "wrong type: WRONGTYPE Operation against a key", FAULT_NONE, false,
        NULL},
    {"-OOM x", "full: OOM x", FAULT_NONE, false, NULL},
    {"-READONLY x", "elsewhere: READONLY x", FAULT_NONE, false, NULL},
    {"-ERR strange", "server, unsure: ERR strange", FAULT_NONE, false, NULL},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        for (int kind = VERB_JOIN; kind <= VERB_STAY; kind++) {
            struct text why;
            text_clear(&why);
            begin_line((enum verb_kind)kind);
            dialect.now = OUR_NOW;
            assert_true(strategies_allow_line(&dialect, OUR_NOW, &why));
            sends();
            assert_int_equal(answer(refused[i].error), EXCHANGE_DONE);
            dialog = refused[i].error;
            if (refused[i].outcome)
                check(strcmp(outcome(), refused[i].outcome) == 0, outcome(),
                    refused[i].outcome);
            assert_int_equal(dialect.line_refused, refused[i].refused);
            uint64_t end = OUR_NOW + REFUSAL_NS;
            check(strategies_allow_line(&dialect, OUR_NOW, &why) !=
                      refused[i].lasts,
                "it lasts or not", "the other");
            assert_true(strategies_allow_line(&dialect, end + 1, &why));
            text_clear(&why);
            assert_int_equal(strategies_allow_line(&dialect, 0, &why),
                refused[i].why == NULL);
            assert_string_equal(why.data, refused[i].why ? refused[i].why : "");
            exchange_restart(&x, &verb, NULL); /* this one joins */
            sends();
            assert_int_equal(answer("[:0 :500 :0]"), EXCHANGE_DONE);
            assert_true(strategies_allow_line(&dialect, 0, &why));
        }
    }
}

/* Another connection may be another server's. */
static void another_connection_knows_nothing(void **state)
{
    struct text why;

    (void)state;
    begin_line(VERB_JOIN);
    sends();
    assert_int_equal(answer("-ERR unknown command 'EVALSHA'"), EXCHANGE_DONE);
    text_clear(&why);
    assert_false(strategies_allow_line(&dialect, 0, &why));
    dialect_begin(&dialect);
    assert_true(strategies_allow_line(&dialect, 0, &why));
}

static void no_line_of_timestamps(void **state)
{
    struct text why;

    (void)state;
    dialect_begin(&dialect);
    dialect.ttl_in_values = true;
    text_clear(&why);
    assert_false(strategies_allow_line(&dialect, OUR_NOW, &why));
    assert_string_equal(why.data, "the locks are timestamps");
    dialect.ttl_in_values = false;
}

/* Sent unanswered, a JOIN may still put the token in line, in either step. */
static void what_a_join_may_still_do(void **state)
{
    (void)state;
    begin_line(VERB_JOIN);
    x.written = WRITTEN_END; /* of an earlier token */
    exchange_restart(&x, &verb, NULL);
    play(JOIN, NULL);
    assert_true(exchange_may_undo(&x));
    assert_false(exchange_end_is_in_value(&x));
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
}

/* After it was answered that the user cannot hand over, on that connection; but
 * to leave the line takes the other script. */
static void a_release_that_hands_over_to_nobody(void **state)
{
    (void)state;
    begin('r', 0);
    verb.gap_ms = 75;
    play(GAP ":1", "mine");
    begin('r', 0);
    verb.gap_ms = 75;
    play(GAP ":2", "mine"); /* the user may not leave one */
    begin('r', 0);
    verb.gap_ms = 75;
    play(GAP ":5", "mine");
    begin('r', 0);
    play(RELEASE ":5", "mine"); /* one was due */
    begin('r', 0);
    verb.gap_ms = 75;
    play(GAP NOSCRIPT "> EVAL text:release 1 k T ?75\n:0", "not mine");

    begin('r', 0);
    play(RELEASE ":2", "mine");
    exchange_begin(&x, &verb, NULL);
    play(RELEASE ":4", "mine");
    exchange_restart(&x, &verb, NULL);
    play(PLAIN ":1", "mine");
    verb.client = slice_of("-");
    exchange_begin(&x, &verb, NULL);
    assert_contains(sends(), "EVALSHA sha:release 1 k T " TOKEN);
    assert_int_equal(answer(":3"), EXCHANGE_DONE);
    verb.client.len = 0;
    dialect_begin(&dialect);
    exchange_begin(&x, &verb, NULL);
    play(RELEASE ":1", "mine");
}

/* A lock that was handed over says that somebody may be behind it, unless it is
 * not to be handed over. */
static void a_release_with_somebody_behind(void **state)
{
    (void)state;
    begin('r', 0);
    verb.has_waiters_behind = true;
    play(FOLLOWED ":2", "mine");
    exchange_begin(&x, &verb, NULL);
    play(FOLLOWED NOSCRIPT "> EVAL text:release 1 k T +\n:1", "mine");
    verb.gap_ms = 75;
    exchange_begin(&x, &verb, NULL);
    play(GAP ":1", "mine");
    verb.gap_ms = 0;
    exchange_begin(&x, &verb, NULL);
    dialect.now = OUR_NOW;
    play(FOLLOWED ":4", "mine");
    exchange_restart(&x, &verb, NULL);
    play(PLAIN ":1", "mine");
    dialect.now += REFUSAL_NS; /* the cause may be gone */
    exchange_restart(&x, &verb, NULL);
    play(FOLLOWED ":4", "mine");
    exchange_begin(&x, &verb, NULL); /* another lock */
    play(FOLLOWED ":1", "mine");
    verb.client = slice_of("-");
    dialect_begin(&dialect);
    exchange_begin(&x, &verb, NULL);
    assert_contains(sends(), "EVALSHA sha:release 1 k T " TOKEN);
    assert_int_equal(answer(":3"), EXCHANGE_DONE);
}

/* Two sent together: the first one's answer does not change what the second
 * one's means. */
static void what_was_sent_before_it_was_known(void **state)
{
    (void)state;
    begin('r', 0);
    play(RELEASE, NULL);
    x.hand_over_again = dialect.now + REFUSAL_NS;
    assert_int_equal(answer(":2"), EXCHANGE_DONE);
    assert_string_equal(outcome(), "mine");
}

/* Over several servers nobody is in line. What the mark says there is asked for
 * by another client that waits, and stays when this one leaves. */
static void nobody_is_handed_one_of_several_servers(void **state)
{
    (void)state;
    dialect.several_servers = true;
    begin('r', 0);
    play("> EVALSHA sha:release 1 k T -\n:1", "mine");
    dialect.several_servers = false;
}

/* The cache of a lock knows its release with a hand-over, and no other. */
static void the_cache_is_of_the_usual_release(void **state)
{
    struct command_cache kept = {{NULL}};

    (void)state;
    begin('r', 0);
    exchange_begin(&x, &verb, &kept);
    play(RELEASE ":1", "mine");
    verb.gap_ms = 75;
    exchange_begin(&x, &verb, &kept);
    play(GAP ":1", "mine");
    verb.gap_ms = 0;
    verb.has_waiters_behind = true;
    exchange_begin(&x, &verb, &kept);
    play(FOLLOWED ":1", "mine");
    verb.has_waiters_behind = false;
    verb.kind = VERB_STAY;
    verb.client = slice_of("-");
    exchange_begin(&x, &verb, &kept);
    play("> EVALSHA sha:line_wait 4 k {k}:nxl-l {k}:nxl-w {k}:nxl-g T 1000 - 0 "
         "0\n[:1]",
        "granted");
    verb.kind = VERB_RELEASE;
    verb.client.len = 0;
    exchange_begin(&x, &verb, &kept);
    play(RELEASE ":1", "mine");
    command_cache_free(&kept);
}

static void names_with_a_hash_tag(void **state)
{
    static const struct {
        const char *key, *join, *release;
    } cases[] = {
        {"a{b}c", "4 a{b}c a{b}c::nxl-l a{b}c::nxl-w a{b}c::nxl-g T",
            "release 1 a{b}c T  a{b}c::nxl-w"},
        {"{}{a}", "4 {}{a} {{}{a}}:nxl-l {{}{a}}:nxl-w {{}{a}}:nxl-g T",
            "release 1 {}{a} T"},
        {"{a", "4 {a {{a}:nxl-l {{a}:nxl-w {{a}:nxl-g T", "release 1 {a T"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[128];
        begin_line(VERB_JOIN);
        verb.key = slice_of(cases[i].key);
        snprintf(expected, sizeof(expected),
            "EVALSHA sha:line_wait %s 1000 c 96 1", cases[i].join);
        assert_string_equal(sends(), expected);
        begin('r', 0);
        verb.key = slice_of(cases[i].key);
        snprintf(
            expected, sizeof(expected), "EVALSHA sha:%s", cases[i].release);
        assert_string_equal(sends(), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(another_connection_knows_nothing),
        cmocka_unit_test(no_line_of_timestamps),
        cmocka_unit_test(what_a_join_may_still_do),
        cmocka_unit_test(a_release_that_hands_over_to_nobody),
        cmocka_unit_test(a_release_with_somebody_behind),
        cmocka_unit_test(what_was_sent_before_it_was_known),
        cmocka_unit_test(nobody_is_handed_one_of_several_servers),
        cmocka_unit_test(the_cache_is_of_the_usual_release),
        cmocka_unit_test(names_with_a_hash_tag),
    };
    return cmocka_run_group_tests_name("line_wire", tests, NULL, NULL);
}
