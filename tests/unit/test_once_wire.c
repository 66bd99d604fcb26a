/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: what BEGIN, LOOK, TELL, FORGET and UNBEGIN send,
 * and what every reply to them means. What the scripts do is tested on real
 * servers, in tests/live/scenes/once_records.scenes.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define NOSCRIPT "-NOSCRIPT No matching script.\n"
#define LINE "once1 done B 5 1 0 1 2 3 0 0 9 =f 1"
#define NOT_KEPT "once1 done B 5 1 0 1 2 3 0 0 9 =f -1"
#define BEGIN_WITH(how, mode, print, hand)                                     \
    "> " how "begin 3 k {k}:once {k}:f T 1000 " mode " 700000 " print          \
    " 86400000 " hand " {k}:nxl-w\n"
#define BEGIN BEGIN_WITH("EVALSHA sha:", "halt", "=f", "")
#define BEGIN_WHOLE BEGIN_WITH("EVAL text:", "halt", "=f", "")
#define LOOK BEGIN_WITH("EVALSHA sha:", "look", "=f", "")
#define TELL_WITH(verdict, stays, hand, result)                                \
    "> EVALSHA sha:tell 2 k {k}:once T " verdict " -3 700000 =f " stays        \
    " " hand " {k}:nxl-w" result "\n"
#define TELL TELL_WITH("done", "1000", "", " it")
#define FORGET "> EVALSHA sha:forget 2 k {k}:once seen\n"
#define UNBEGIN                                                                \
    "> EVALSHA sha:tell 2 k {k}:once T unbegun 0 0 - 0  {k}:nxl-w \n"

static struct reply_values leaves;
static struct once_terms terms;

static void begin_once(enum verb_kind kind)
{
    begin('r', 0);
    reply_values_clear(&leaves);
    dialect.max_ttl_ms = 60000;
    terms = (struct once_terms){.fingerprint = slice_of("f"),
        .keep_ms = 700000,
        .reported = ONCE_DONE,
        .code = -3,
        .result = slice_of("it"),
        .line = slice_of("seen")};
    verb.kind = kind;
    verb.once = kind == VERB_UNDO_BEGIN ? NULL : &terms;
    verb.values = &leaves;
    exchange_begin(&x, &verb, NULL);
}

/* The reader's answer to an array: the values, with '|' between them; behind a
 * '[', one with an array in it. */
static enum exchange_next answer_leaves(const char *values)
{
    struct reply reply = {.kind = REPLY_ARRAY, .nested = *values == '['};
    char all[512], *rest = all;

    values += reply.nested;
    snprintf(all, sizeof(all), "%s", values);
    while (*values && rest) {
        char *value = strsep(&rest, "|");
        if (strcmp(value, "nil") == 0)
            reply_values_add_nil(&leaves);
        else
            reply_values_add(&leaves, slice_of(value));
    }
    return exchange_reply(&x, &reply);
}

static void play_leaves(
    enum verb_kind kind, const char *values, const char *expected)
{
    static const char *const sent[VERB_KINDS] = {
        [VERB_BEGIN] = BEGIN, [VERB_READ_RECORD] = LOOK, [VERB_TELL] = TELL};

    begin_once(kind);
    play(sent[kind], NULL);
    dialog = values;
    check(answer_leaves(values) == EXCHANGE_DONE, "it goes on", expected);
    check(strcmp(outcome(), expected) == 0, outcome(), expected);
}

/* The command, and then this reply. */
static void play_reply(
    enum verb_kind kind, const char *sent, const char *reply, const char *words)
{
    char lines[512];

    begin_once(kind);
    snprintf(lines, sizeof(lines), "%s%s", sent, reply);
    play(lines, words);
}

static void what_is_sent(void **state)
{
    (void)state;
    begin_once(VERB_BEGIN);
    play(BEGIN NOSCRIPT BEGIN_WHOLE NOSCRIPT,
        "retry: NOSCRIPT No matching script.");
    begin_once(VERB_BEGIN);
    terms.retries = true;
    terms.fingerprint = slice_of("");
    x.hand_over_again = 1;
    play(BEGIN_WITH("EVALSHA sha:", "retry", "-", "-"), NULL);
    begin_once(VERB_BEGIN);
    x.always_text = true;
    terms.fingerprint = slice_of("-");
    play(BEGIN_WITH("EVAL text:", "halt", "=-", ""), NULL);
    begin_once(VERB_FORGET);
    play(FORGET, NULL);
    begin_once(VERB_UNDO_BEGIN);
    play(UNBEGIN, NULL);
}

static void what_is_told(void **state)
{
    static const struct {
        enum once_state verdict;
        const char *sent;
    } rows[] = {
        {ONCE_DONE, TELL},
        {ONCE_FAILED, TELL_WITH("failed", "1000", "", " it")},
        {ONCE_DOUBT, TELL_WITH("unsure", "1000", "", " it")},
        {ONCE_CLEAR, TELL_WITH("clear", "1000", "", " it")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_once(VERB_TELL);
        terms.reported = rows[i].verdict;
        play(rows[i].sent, NULL);
    }
    begin_once(VERB_TELL);
    terms.result_omitted = true;
    verb.ttl_ms = 0;
    verb.gap_ms = 75;
    play(TELL_WITH("done", "0", "?75", ""), NULL);
    verb.gap_ms = 0;
    verb.has_waiters_behind = true;
    exchange_begin(&x, &verb, NULL);
    play(TELL_WITH("done", "0", "+", ""), NULL);
    /* From its end on the lease may be another process's. */
    begin_once(VERB_TELL);
    verb.not_after = 100;
    dialect.now = 99;
    play(TELL, NULL);
    dialect.now = 100;
    exchange_begin(&x, &verb, NULL);
    play(TELL_WITH("done", "-1", "", " it"), NULL);
}

static void keys_with_a_hash_tag(void **state)
{
    (void)state;
    begin_once(VERB_BEGIN);
    verb.key = slice_of("a{b}");
    play("> EVALSHA sha:begin 3 a{b} a{b}::once a{b}:f T 1000 halt 700000 =f "
         "86400000  a{b}::nxl-w\n",
        NULL);
    begin_once(VERB_FORGET);
    verb.key = slice_of("a{b}");
    play("> EVALSHA sha:forget 2 a{b} a{b}::once seen\n", NULL);
}

static void begun(void **state)
{
    (void)state;
    play_leaves(VERB_BEGIN, "1|17|" LINE, "granted");
    assert_int_equal(x.outcome.fence, 17);
    play_leaves(VERB_BEGIN, "2|0|" LINE "|x", "recorded");
    assert_int_equal(x.outcome.found, FOUND_DONE);
    play_leaves(VERB_BEGIN, "2|0|" NOT_KEPT, "recorded");
    /* Not the whole result. */
    play_leaves(VERB_BEGIN, "2|0|" LINE, BROKEN);
    play_leaves(VERB_BEGIN, "2|0|" LINE "|", BROKEN);
    play_leaves(VERB_BEGIN, "2|0|" LINE "|nil", BROKEN);
    play_leaves(VERB_BEGIN, "2|0|" LINE "|xy", BROKEN);
    play_leaves(VERB_BEGIN, "2|0|" NOT_KEPT "|", BROKEN);
    play_leaves(VERB_READ_RECORD, "2|0|" LINE "|xy", BROKEN);
    play_leaves(VERB_BEGIN, "3|0|" LINE, "recorded");
    assert_int_equal(x.outcome.found, FOUND_DOUBT);
    play_leaves(VERB_BEGIN, "4|0|" LINE, "recorded");
    assert_int_equal(x.outcome.found, FOUND_MISMATCH);
    play_leaves(VERB_BEGIN, "5|500|" LINE, "busy 500");
    play_leaves(VERB_BEGIN, "5|500", "busy 500");
    play_leaves(VERB_BEGIN, "5|-1", "busy for ever");
    play_leaves(VERB_BEGIN, "5|-2", "busy 0");

    play_leaves(VERB_READ_RECORD, "0|0", "free");
    play_leaves(VERB_READ_RECORD, "0|0|" LINE, "free");
    play_leaves(VERB_READ_RECORD, "2|0|" LINE "|x", "recorded");
    assert_int_equal(x.outcome.found, FOUND_DONE);
    play_leaves(VERB_READ_RECORD, "3|0|" LINE, "recorded");
    assert_int_equal(x.outcome.found, FOUND_DOUBT);
    play_leaves(VERB_READ_RECORD, "4|0|" LINE, "recorded");
    assert_int_equal(x.outcome.found, FOUND_MISMATCH);
    play_leaves(VERB_READ_RECORD, "5|500", "recorded");
    assert_int_equal(x.outcome.found, FOUND_BUSY);
}

static void told(void **state)
{
    (void)state;
    play_leaves(VERB_TELL, "1|1|" LINE, "mine");
    play_leaves(VERB_TELL, "1|0", "mine"); /* nobody had begun */
    play_leaves(VERB_TELL, "0|2|" LINE, "not mine");
    assert_int_equal(x.hand_over_again, 0);
    play_leaves(VERB_TELL, "1|4|" LINE, "mine"); /* it cannot hand over */
    assert_int_equal(x.hand_over_again, REFUSAL_NS);
}

static void forgotten_and_taken_back(void **state)
{
    (void)state;
    begin_once(VERB_FORGET);
    play(FORGET ":1", "mine");
    begin_once(VERB_FORGET);
    play(FORGET ":0", "not mine");
    assert_int_equal(x.outcome.found, FOUND_NOTHING);
    begin_once(VERB_FORGET);
    play(FORGET ":-1", "not mine");
    assert_int_equal(x.outcome.found, FOUND_BUSY);
    begin_once(VERB_UNDO_BEGIN);
    play(UNBEGIN ":1", "mine");
    begin_once(VERB_UNDO_BEGIN);
    play(UNBEGIN ":0", "not mine");
    begin_once(VERB_UNDO_BEGIN);
    play(UNBEGIN ":-1", BROKEN);
}

static void what_is_no_answer(void **state)
{
    static const struct {
        enum verb_kind kind;
        const char *values;
    } rows[] = {
        {VERB_BEGIN, ""},
        {VERB_BEGIN, "1"},
        {VERB_BEGIN, "nil|1|" LINE},
        {VERB_BEGIN, "1|nil|" LINE},
        {VERB_BEGIN, "x|1|" LINE},
        {VERB_BEGIN, "1x|1|" LINE},
        {VERB_BEGIN, "1||" LINE},
        {VERB_BEGIN, "1|17"},
        {VERB_BEGIN, "1|17|nil"},
        {VERB_BEGIN, "1|17|once1 done"},
        {VERB_BEGIN, "1|0|" LINE},
        {VERB_BEGIN, "1|-1|" LINE},
        {VERB_BEGIN, "0|0|" LINE},
        {VERB_BEGIN, "0|0"},
        {VERB_BEGIN, "2|0"},
        {VERB_BEGIN, "3|0"},
        {VERB_BEGIN, "4|0"},
        {VERB_BEGIN, "6|0|" LINE},
        {VERB_BEGIN, "-1|0|" LINE},
        {VERB_BEGIN, "5|-3"},
        {VERB_BEGIN, "2|0|" LINE "|x|y"},
        {VERB_BEGIN, "[1|17|" LINE},
        {VERB_TELL, "[1|0"},
        {VERB_READ_RECORD, "1|17|" LINE},
        {VERB_READ_RECORD, "5|-3"},
        {VERB_READ_RECORD, "6|0|" LINE},
        {VERB_TELL, "2|0"},
        {VERB_TELL, "-1|0"},
        {VERB_TELL, "1|-1"},
        {VERB_TELL, "1|6"},
        {VERB_TELL, "1|0|nil"},
        {VERB_TELL, "1|0|x"},
    };
    static const char *const replies[] = {
        "nil", "+OK", "$1", ":1", ":0", ":-1", ":2", ":-2", "[:1]"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        play_leaves(rows[i].kind, rows[i].values, BROKEN);
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        bool number = replies[i][0] == ':' && i < 6;
        play_reply(VERB_TELL, TELL, replies[i], BROKEN);
        if (!number)
            play_reply(VERB_FORGET, FORGET, replies[i], BROKEN);
    }
}

/* An error proves that nothing was changed, whichever key has the wrong type.
 */
static void errors(void **state)
{
    static const enum verb_kind kinds[] = {
        VERB_BEGIN, VERB_READ_RECORD, VERB_TELL, VERB_FORGET, VERB_UNDO_BEGIN};
    static const char *const sent[] = {BEGIN, LOOK, TELL, FORGET, UNBEGIN};
    static const char *const rows[][2] = {
        {"-WRONGTYPE x", "wrong type: WRONGTYPE x"},
        {"-OOM x", "full: OOM x"},
        {"-READONLY x", "elsewhere: READONLY x"},
        {"-NOPERM x", "no permission: NOPERM x"},
        {"-ERR unknown command 'EVALSHA'",
            "unsupported: ERR unknown command 'EVALSHA'"},
        {"-ERR a record needs Redis 3.2 or later, or Valkey",
            "unsupported: ERR a record needs Redis 3.2 or later, or Valkey"},
        {"-ERR strange", "server, unsure: ERR strange"},
    };

    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            play_reply(kinds[k], sent[k], rows[i][0], rows[i][1]);
    }
}

/* There is no memory for the answer: what it was is unknown. */
static void no_memory(void **state)
{
    struct reply reply = {.kind = REPLY_ARRAY};

    (void)state;
    begin_once(VERB_BEGIN);
    play(BEGIN, NULL);
    leaves.starved = true;
    assert_int_equal(exchange_reply(&x, &reply), EXCHANGE_DONE);
    assert_int_equal(x.outcome.fault, FAULT_SYSTEM);
    assert_true(x.outcome.unsure);
    begin_once(VERB_TELL);
    play(TELL, NULL);
    leaves.full = true;
    assert_int_equal(exchange_reply(&x, &reply), EXCHANGE_DONE);
    assert_string_equal(outcome(), BROKEN);
}

/* A BEGIN in progress can still make the token the key's; the others do not
 * become one. */
static void what_a_cancelled_one_leaves(void **state)
{
    (void)state;
    begin_once(VERB_BEGIN);
    play(BEGIN, NULL);
    assert_int_equal(exchange_deciding_reply(&x, false), 0);
    assert_int_equal(exchange_deciding_reply(&x, true), -1);
    assert_true(exchange_may_undo(&x));
    assert_false(exchange_end_is_in_value(&x));
    assert_int_equal(exchange_lasts_ms(&x, 1000), 1000);
    assert_false(exchange_cancel(&x));
}

static int teardown(void **state)
{
    (void)state;
    exchange_free(&x);
    reply_values_free(&leaves);
    return 0;
}

#define once_test(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(what_is_sent),
        once_test(what_is_told),
        once_test(keys_with_a_hash_tag),
        once_test(begun),
        once_test(told),
        once_test(forgotten_and_taken_back),
        once_test(what_is_no_answer),
        once_test(errors),
        once_test(no_memory),
        once_test(what_a_cancelled_one_leaves),
    };
    return cmocka_run_group_tests_name("once_wire", tests, NULL, NULL);
}
