/* SPDX-License-Identifier: MIT */
/*
 * What exchanges share: a connection, of which another one keeps nothing; a
 * transaction, in which nothing else goes; and commands that are handed over.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define BY_HASH "> EVALSHA sha:release 1 k T\n"
#define WATCH "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define MATCHES WATCH "+OK\n$T\n:500\n:1\n+OK\n"
#define DEL "> DEL k; EXEC\n"
#define DISCARD "> DISCARD\n"
#define NOPERM5 NOPERM NOPERM NOPERM NOPERM NOPERM

static const char letters[VERB_KINDS + 1] = "aerik";

static void another_connection_begins_at_the_first(void **state)
{
    struct exchange other = {0};

    (void)state;
    begin('r', 1);
    memset(dialect.preferred, 1, sizeof(dialect.preferred));
    dialect.in_transaction = &other;
    unsigned connection = dialect.connection;
    dialect_begin(&dialect);
    for (int kind = 0; kind < VERB_KINDS; kind++)
        assert_int_equal(dialect.preferred[kind], 0);
    assert_null(dialect.in_transaction);
    assert_int_not_equal(dialect.connection, connection);
    play(BY_HASH ":1", "mine");
}

/* Whatever has been learnt or read belongs to the connection it came on. */
static void an_exchange_in_its_middle_begins_anew(void **state)
{
    static const char *const middles[] = {
        BY_HASH "-NOSCRIPT x\n> EVAL text:release 1 k T",
        BY_HASH "-NOPERM of the old one\n" WATCH,
        BY_HASH NOPERM MATCHES DEL,
        BY_HASH NOPERM MATCHES DEL "+QUEUED\nnil\n" MATCHES DEL
                                   "+QUEUED\nnil\n" WATCH,
        BY_HASH NOPERM WATCH "+OK\n-MASTERDOWN x\n:500\n:1\n+OK\n> DISCARD",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(middles) / sizeof(middles[0]); i++) {
        begin('r', 0);
        play(middles[i], NULL);
        dialect_begin(&dialect);
        play(BY_HASH "-NOPERM of the new one\n" MATCHES DEL
                     "+QUEUED\nnil\n" MATCHES DEL "+QUEUED\nnil\n" WATCH NOPERM5
                     "> TIME; GETRANGE k 0 511\n" NOPERM NOPERM,
            "no permission: NOPERM of the new one");
    }
    begin('e', 1);
    play(MATCHES "> PEXPIRE k 1000; EXEC", NULL);
    dialect_begin(&dialect);
    dialect.preferred[VERB_EXTEND] = 1;
    play(WATCH "+OK\n$T\n:5000\n:1\n+OK\n" DISCARD "+OK", "mine 5000");
}

/* ------------------------------------------------------------- transactions */

static void nothing_else_goes_within_a_transaction(void **state)
{
    struct exchange other = {0};
    struct verb release = verb_of('r');

    (void)state;
    begin('r', 1);
    exchange_begin(&other, &release, NULL);
    assert_true(exchange_may_send(&x, &dialect));
    assert_true(exchange_may_send(&other, &dialect));
    play(WATCH, NULL);
    assert_true(exchange_may_send(&x, &dialect));
    assert_false(exchange_may_send(&other, &dialect));
    assert_int_equal(answer("+OK"), EXCHANGE_WAIT);
    assert_int_equal(answer("$T"), EXCHANGE_WAIT);
    assert_int_equal(answer(":5"), EXCHANGE_WAIT);
    assert_int_equal(answer(":1"), EXCHANGE_WAIT);
    assert_false(exchange_may_send(&other, &dialect));
    assert_int_equal(answer("+OK"), EXCHANGE_AGAIN);
    assert_false(exchange_may_send(&other, &dialect));
    assert_true(exchange_may_send(&x, &dialect));
    /* Also where it begins anew. */
    play(DEL "+QUEUED\nnil\n" WATCH, NULL);
    assert_false(exchange_may_send(&other, &dialect));
    for (int i = 0; i < 4; i++)
        assert_int_equal(answer(NOPERM), EXCHANGE_WAIT);
    assert_false(exchange_may_send(&other, &dialect));
    assert_int_equal(answer(NOPERM), EXCHANGE_AGAIN); /* without MULTI */
    assert_true(exchange_may_send(&other, &dialect));
}

static void who_leaves_says_whether_it_is_open(void **state)
{
    struct buf out = {0};
    struct bytes said = {NULL, 0, 0};

    (void)state;
    begin('r', 1);
    assert_false(exchange_cancel(&x)); /* nothing went */
    play(WATCH, NULL);
    assert_true(exchange_cancel(&x));
    assert_null(dialect.in_transaction);
    assert_false(exchange_cancel(&x));
    begin('r', 1);
    play(MATCHES DEL, NULL);
    assert_true(exchange_cancel(&x));
    begin('r', 1);
    play(MATCHES DEL "+QUEUED\n[:1]", "mine");
    assert_false(exchange_cancel(&x));
    begin('r', 0);
    play(BY_HASH, NULL);
    assert_false(exchange_cancel(&x));
    /* Not what another one has opened. */
    struct exchange other = {0};
    dialect.in_transaction = &other;
    assert_false(exchange_cancel(&x));
    assert_ptr_equal(dialect.in_transaction, &other);
    /* ... nor what a connection that is gone took with it. */
    begin('r', 1);
    play(WATCH, NULL);
    dialect_begin(&dialect);
    assert_false(exchange_cancel(&x));

    assert_true(command_discard(&out));
    assert_int_equal(add_commands(&said, &out), 1);
    assert_string_equal(said.data, "DISCARD");
    bytes_free(&said);
    buf_free(&out);
}

/* A transaction that could not be ended: no other way is tried, and the next
 * connection knows nothing of it. Which errors leave one open is in
 * tests/fuzz/meaning.h. */
static void refused_to_discard_it(void **state)
{
    (void)state;
    begin('r', 0);
    play(BY_HASH "-NOPERM first\n" MATCHES DEL NOPERM NOPERM DISCARD NOPERM,
        "no permission: NOPERM first");
    assert_int_equal(x.phase, EXCHANGE_PHASE_STUCK);
    dialect_begin(&dialect);
    play(BY_HASH ":1", "mine");
    assert_int_not_equal(x.phase, EXCHANGE_PHASE_STUCK);
}

/* ------------------------------------------------------------ handing over */

static void what_compares_by_itself(void **state)
{
    (void)state;
    for (int kind = 0; letters[kind]; kind++) {
        for (unsigned i = 0; i < 2; i++) {
            begin(letters[kind], i);
            assert_false(exchange_compares(&x)); /* nothing went */
            sends();
            assert_int_equal(
                exchange_compares(&x), kind == VERB_RELEASE && i == 0);
            assert_int_equal(
                exchange_always_writes(&x), kind == VERB_EXTEND && i == 0);
        }
    }
}

/* Nothing of it is needed by the one that took over. */
static void wipe_first(void)
{
    exchange_free(&x);
    memset(&x, 'z', sizeof(x));
    x.stored = x.first = NULL;
}

static void another_one_takes_over(void **state)
{
    struct verb copy = verb_of('r');
    static struct exchange y;

    (void)state;
    /* The answer to what the first one has sent. */
    begin('r', 0);
    play(BY_HASH, NULL);
    exchange_move(&x, &y, &copy);
    wipe_first();
    assert_int_equal(y.due, 1);
    assert_true(exchange_compares(&y));
    assert_int_equal(answer_to(&y, ":1"), EXCHANGE_DONE);
    assert_string_equal(outcome_of(&y), "mine");

    /* It goes on where the first one was, and remembers what it learns. */
    begin('r', 0);
    play(BY_HASH, NULL);
    exchange_move(&x, &y, &copy);
    wipe_first();
    memset(&verb, 'z', sizeof(verb));
    assert_int_equal(answer_to(&y, "-NOSCRIPT x"), EXCHANGE_AGAIN);
    assert_string_equal(sends_of(&y), "EVAL text:release 1 k T");
    assert_int_equal(answer_to(&y, "-NOPERM x"), EXCHANGE_AGAIN);
    assert_string_equal(
        sends_of(&y), "WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI");
    for (int i = 0; i < 4; i++)
        assert_int_equal(answer_to(&y, "-LOADING x"), EXCHANGE_WAIT);
    assert_int_equal(answer_to(&y, "-LOADING x"), EXCHANGE_DONE);
    assert_string_equal(outcome_of(&y), "retry: LOADING x");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 1);

    /* The text has gone already: it is not asked for again. */
    begin('r', 0);
    play(BY_HASH "-NOSCRIPT x\n> EVAL text:release 1 k T", NULL);
    exchange_move(&x, &y, &copy);
    assert_int_equal(answer_to(&y, "-NOSCRIPT x"), EXCHANGE_DONE);
    assert_string_equal(outcome_of(&y), "retry: NOSCRIPT x");

    /* It is still one of a lock that several hold: there is no other way. */
    begin('r', 0);
    play(BY_HASH, NULL);
    x.shared = true;
    exchange_move(&x, &y, &copy);
    assert_int_equal(answer_to(&y, "-NOPERM x"), EXCHANGE_DONE);
    assert_contains(outcome_of(&y), "NOPERM x");
    assert_int_equal(dialect.preferred[VERB_RELEASE], 0);

    /* On another way; and then on another connection. */
    begin('r', 0);
    play(BY_HASH NOPERM WATCH, NULL);
    exchange_move(&x, &y, &copy);
    for (int i = 0; i < 4; i++)
        assert_int_equal(answer_to(&y, "-READONLY x"), EXCHANGE_WAIT);
    assert_int_equal(answer_to(&y, "-READONLY x"), EXCHANGE_DONE);
    assert_string_equal(outcome_of(&y), "elsewhere: READONLY x");
    begin('r', 1);
    play(WATCH, NULL);
    exchange_move(&x, &y, &copy);
    dialect_begin(&dialect);
    assert_string_equal(sends_of(&y), "EVALSHA sha:release 1 k T");
}

/* Is the script of the next acquire sent with its text? */
static bool acquires_by_text(void)
{
    exchange_begin(&x, &verb, NULL);
    return strncmp(sends(), "EVAL text:", strlen("EVAL text:")) == 0;
}

/* Of several servers the answer of the last one is not read: it is sent the
 * text unless an answer has shown that it has the script. */
static void the_last_server_may_not_have_the_script(void **state)
{
    static const char *const granted[] = {":17", ":1"}; /* fence, take */

    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        begin('a', 0);
        dialect.several_servers = true;
        if (shared)
            verb.token = slice_of("123e4567-e89b-42d3-a456-426614174000+1/0");
        else
            verb.counter = slice_of("{k}:f");
        assert_true(acquires_by_text());
        assert_false(acquires_by_text()); /* it has been sent */
        assert_true(acquires_by_text());  /* was that understood? */
        assert_false(acquires_by_text());
        assert_int_equal(answer(granted[shared]), EXCHANGE_DONE);
        assert_false(acquires_by_text());
        assert_int_equal(answer("-NOSCRIPT x"), EXCHANGE_AGAIN);
        assert_contains(sends(), "EVAL text:");
        assert_int_equal(answer(granted[shared]), EXCHANGE_DONE);
        assert_false(acquires_by_text());
        dialect_begin(&dialect);
        assert_true(acquires_by_text());
        dialect.several_servers = false;
        dialect_begin(&dialect);
        assert_false(acquires_by_text());
        assert_false(acquires_by_text());
        exchange_free(&x);
    }
}

/* How the token is written decides what may follow, and outlives the verb. */
static void how_the_token_is_written(void **state)
{
    static const struct {
        enum written written;
        bool tells_end, may_undo;
        uint64_t lasts_ms;
    } cases[] = {
        {WRITTEN_TOKEN, false, true, UINT32_MAX},
        {WRITTEN_END, true, true, UINT64_C(5000) + UINT32_MAX},
        {WRITTEN_OVER, true, false, UINT64_C(5000) + UINT32_MAX},
    };
    static struct exchange heir;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb = (struct verb){.kind = VERB_RELEASE, .token = slice_of("t")};
        exchange_begin(&x, &verb, NULL);
        x.written = cases[i].written;
        exchange_restart(&x, &verb, NULL);
        exchange_begin(&heir, &verb, NULL);
        assert_false(exchange_end_is_in_value(&heir));
        exchange_inherit(&heir, &x);
        assert_int_equal(exchange_end_is_in_value(&heir), cases[i].tells_end);
        assert_int_equal(exchange_may_undo(&heir), cases[i].may_undo);
        assert_int_equal(
            exchange_lasts_ms(&heir, UINT32_MAX), cases[i].lasts_ms);
        verb.of_other_holder = true; /* which was written by another handle */
        exchange_restart(&heir, &verb, NULL);
        assert_false(exchange_end_is_in_value(&heir));
        assert_true(exchange_may_undo(&heir));
        verb.of_other_holder = false;
        exchange_restart(&heir, &verb, NULL);
        assert_int_equal(heir.written, cases[i].written);
        verb.kind = i == 1 ? VERB_JOIN : VERB_ACQUIRE;
        exchange_restart(&x, &verb, NULL);
        assert_int_equal(x.written, WRITTEN_TOKEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_connection_begins_at_the_first),
        cmocka_unit_test(an_exchange_in_its_middle_begins_anew),
        cmocka_unit_test(nothing_else_goes_within_a_transaction),
        cmocka_unit_test(who_leaves_says_whether_it_is_open),
        cmocka_unit_test(refused_to_discard_it),
        cmocka_unit_test(what_compares_by_itself),
        cmocka_unit_test(another_one_takes_over),
        cmocka_unit_test(the_last_server_may_not_have_the_script),
        cmocka_unit_test(how_the_token_is_written),
    };
    return cmocka_run_group_tests_name("strategies_share", tests, NULL, NULL);
}
