/* SPDX-License-Identifier: MIT */
/* Every reply a verb can get, the bytes that ask for it and the outcome. */
#include "support/test.h"

#include "wire/exchange.h"

#define TOKEN "01234567-89ab-4def-8123-456789abcdef"

#define VERB(of, the_token, ttl)                                               \
    {                                                                          \
        .kind = VERB_##of, .key = {"k", 1}, .token = the_token, .ttl_ms = ttl  \
    }
#define NO_TOKEN                                                               \
    {                                                                          \
        NULL, 0                                                                \
    }
#define THE_TOKEN                                                              \
    {                                                                          \
        TOKEN, 36                                                              \
    }

static const struct verb verbs[VERB_KINDS] = {
    [VERB_ACQUIRE] = VERB(ACQUIRE, THE_TOKEN, 1000),
    [VERB_EXTEND] = VERB(EXTEND, THE_TOKEN, 1000),
    [VERB_RELEASE] = VERB(RELEASE, THE_TOKEN, 0),
    [VERB_INSPECT] = VERB(INSPECT, NO_TOKEN, 0),
    [VERB_CAP_TTL] = VERB(CAP_TTL, THE_TOKEN, 1000),
};
static const struct verb acquire_left = {.kind = VERB_ACQUIRE,
    .key = {"k", 1},
    .token = THE_TOKEN,
    .ttl_ms = 1000,
    .want_left = true};
static const struct verb inspect_token = VERB(INSPECT, THE_TOKEN, 0);

static struct reply integer(int64_t n)
{
    return (struct reply){.kind = REPLY_INTEGER, .integer = n};
}

static struct reply words(enum reply_kind kind, const char *text)
{
    return (struct reply){.kind = kind, .bytes = slice_of(text)};
}

static struct reply array(const struct reply *items, size_t count)
{
    return (struct reply){.kind = REPLY_ARRAY, .count = count, .items = items};
}

static const struct reply nil = {.kind = REPLY_NIL};

static void assert_slice(struct slice s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.data, text, s.len);
}

static struct dialect dialect; /* of a connection of which nothing is known */

/* Encodes; the bytes are dropped. */
static unsigned encode(struct exchange *x)
{
    struct buf out = {0};
    unsigned due = exchange_encode(x, &dialect, &out);

    assert_int_equal(x->due, due);
    assert_true(buf_len(&out) > 0);
    buf_free(&out);
    return due;
}

/* Begins on another connection and encodes. */
static void start(struct exchange *x, const struct verb *verb, unsigned due)
{
    dialect_begin(&dialect);
    exchange_begin(x, verb, NULL);
    assert_int_equal(encode(x), due);
}

/* The outcome of a verb with one reply; an error is the reply to everything
 * that is tried after it, too. */
static struct outcome after(const struct verb *verb, struct reply reply)
{
    static struct exchange x; /* the outcome points into it */
    enum exchange_next next;
    unsigned replies = 1;

    start(&x, verb, 1);
    while ((next = exchange_reply(&x, &reply)) != EXCHANGE_DONE) {
        assert_int_equal(reply.kind, REPLY_ERROR);
        assert_true(++replies < 20);
        if (next == EXCHANGE_AGAIN)
            assert_true(encode(&x) > 0);
    }
    assert_int_equal(x.due, 0);
    assert_int_equal(
        x.outcome.fault == FAULT_NONE, x.outcome.kind != OUTCOME_FAULT);
    return x.outcome;
}

static void assert_outcome(
    const struct verb *verb, struct reply reply, int kind, int64_t left_ms)
{
    struct outcome o = after(verb, reply);
    assert_int_equal(o.kind, kind);
    assert_int_equal(o.left_ms, left_ms);
    assert_false(o.unsure);
    assert_int_equal(o.sent_at, 0);
}

static void assert_broken(const struct verb *verb, struct reply reply)
{
    struct outcome o = after(verb, reply);
    assert_int_equal(o.kind, OUTCOME_FAULT);
    assert_int_equal(o.fault, FAULT_NOT_REDIS);
    assert_true(o.unsure);
    assert_true(slice_starts(o.text, "expected "));
}

static void assert_refused(
    const struct verb *verb, const char *error, enum fault fault)
{
    struct outcome o = after(verb, words(REPLY_ERROR, error));
    assert_int_equal(o.kind, OUTCOME_FAULT);
    assert_int_equal(o.fault, fault);
    assert_false(o.unsure);
    assert_slice(o.text, error);
}

static void test_acquire(void **state)
{
    const struct verb *v = &verbs[VERB_ACQUIRE];

    (void)state;
    assert_outcome(v, words(REPLY_STATUS, "OK"), OUTCOME_GRANTED, LEFT_UNKNOWN);
    assert_outcome(v, nil, OUTCOME_BUSY, LEFT_UNKNOWN);
    assert_refused(v, "OOM command not allowed", FAULT_FULL);
    assert_refused(v, "LOADING x", FAULT_RETRY);
    assert_broken(v, words(REPLY_STATUS, "QUEUED"));
    assert_broken(v, words(REPLY_STATUS, ""));
    assert_broken(v, words(REPLY_STRING, "OK"));
    assert_broken(v, integer(1));
    assert_broken(v, array(NULL, 0));
}

static void test_acquire_bytes(void **state)
{
    static const char set[] = "*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$36\r\n" TOKEN
                              "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n";
    static const char both[] = "*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$36\r\n" TOKEN
                               "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n"
                               "*2\r\n$4\r\nPTTL\r\n$1\r\nk\r\n";
    struct command_cache kept = {0};
    static struct exchange x;
    struct buf out = {0};

    (void)state;
    dialect_begin(&dialect);
    for (int i = 0; i < 2; i++) {
        exchange_begin(&x, &verbs[VERB_ACQUIRE], &kept);
        assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
        assert_int_equal(buf_len(&out), sizeof(set) - 1);
        assert_memory_equal(buf_head(&out), set, sizeof(set) - 1);
        buf_clear(&out);

        exchange_begin(&x, &acquire_left, &kept);
        assert_int_equal(exchange_encode(&x, &dialect, &out), 2);
        assert_int_equal(buf_len(&out), sizeof(both) - 1);
        assert_memory_equal(buf_head(&out), both, sizeof(both) - 1);
        buf_clear(&out);
    }
    assert_non_null(*command_cached(&kept, VERB_ACQUIRE));
    command_cache_free(&kept);
    buf_free(&out);
}

static struct outcome after_two(
    struct exchange *x, struct reply first, struct reply second)
{
    start(x, &acquire_left, 2);
    assert_int_equal(exchange_reply(x, &first), EXCHANGE_WAIT);
    assert_int_equal(x->due, 1);
    assert_int_equal(exchange_reply(x, &second), EXCHANGE_DONE);
    assert_int_equal(x->due, 0);
    return x->outcome;
}

static void test_acquire_with_time_left(void **state)
{
    static const struct {
        int64_t pttl, left_ms;
    } cases[] = {{1234, 1234}, {0, 0}, {-2, 0}};
    const struct reply ok = words(REPLY_STATUS, "OK");
    static struct exchange x;
    struct outcome o;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        o = after_two(&x, nil, integer(cases[i].pttl));
        assert_int_equal(o.kind, OUTCOME_BUSY);
        assert_int_equal(o.left_ms, cases[i].left_ms);
    }
    o = after_two(&x, ok, integer(1000));
    assert_int_equal(o.kind, OUTCOME_GRANTED);

    /* Without an end: is it a time that somebody left? */
    const struct reply forever = integer(-1);
    start(&x, &acquire_left, 2);
    assert_int_equal(exchange_reply(&x, &nil), EXCHANGE_WAIT);
    assert_int_equal(exchange_reply(&x, &forever), EXCHANGE_AGAIN);
    assert_int_equal(encode(&x), 3);

    /* PTTL may be forbidden: it decides nothing. */
    o = after_two(&x, nil, words(REPLY_ERROR, "NOPERM x"));
    assert_int_equal(o.kind, OUTCOME_BUSY);
    assert_int_equal(o.left_ms, LEFT_UNKNOWN);
    o = after_two(&x, ok, words(REPLY_ERROR, "NOPERM x"));
    assert_int_equal(o.kind, OUTCOME_GRANTED);
    assert_int_equal(o.fault, FAULT_NONE);

    /* But what cannot be PTTL's answer belongs to another command. */
    o = after_two(&x, ok, words(REPLY_STATUS, "OK"));
    assert_int_equal(o.fault, FAULT_NOT_REDIS);
    assert_true(o.unsure);
    o = after_two(&x, nil, integer(-3));
    assert_int_equal(o.fault, FAULT_NOT_REDIS);
}

static void test_first_words_outlive_the_second_reply(void **state)
{
    static struct exchange x;
    char volatile_words[600] = "READONLY You can't write";
    struct reply first = words(REPLY_ERROR, volatile_words);

    (void)state;
    start(&x, &acquire_left, 2);
    assert_int_equal(exchange_reply(&x, &first), EXCHANGE_WAIT);
    memset(volatile_words, 'z', sizeof(volatile_words));
    struct reply second = integer(-2);
    assert_int_equal(exchange_reply(&x, &second), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_FAULT);
    assert_int_equal(x.outcome.fault, FAULT_NOT_PRIMARY);
    assert_false(x.outcome.unsure);
    assert_slice(x.outcome.text, "READONLY You can't write");

    first.bytes.len = sizeof(volatile_words);
    start(&x, &acquire_left, 2);
    assert_int_equal(exchange_reply(&x, &first), EXCHANGE_WAIT);
    assert_int_equal(exchange_reply(&x, &second), EXCHANGE_DONE);
    assert_int_equal(x.outcome.text.len, EXCHANGE_TEXT);
}

static void test_extend(void **state)
{
    const struct verb *v = &verbs[VERB_EXTEND];

    (void)state;
    assert_outcome(v, integer(1000), OUTCOME_MINE, 1000);
    assert_outcome(v, integer(0), OUTCOME_MINE, 0);
    assert_outcome(v, integer(-2), OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    assert_refused(v, "READONLY x", FAULT_NOT_PRIMARY);
    assert_refused(v, "ERR unknown command 'EVALSHA'", FAULT_UNSUPPORTED);
    assert_outcome(v, integer(-1), OUTCOME_MINE, LEFT_FOREVER);
    assert_broken(v, integer(-3));
    assert_broken(v, nil);
    assert_broken(v, words(REPLY_STATUS, "OK"));
}

static void test_release(void **state)
{
    const struct verb *v = &verbs[VERB_RELEASE];

    (void)state;
    assert_outcome(v, integer(1), OUTCOME_MINE, LEFT_UNKNOWN);
    assert_outcome(v, integer(2), OUTCOME_MINE, LEFT_UNKNOWN);
    assert_outcome(v, integer(4), OUTCOME_MINE, LEFT_UNKNOWN);
    assert_outcome(v, integer(0), OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    assert_refused(v, "MISCONF x", FAULT_REFUSING);
    assert_broken(v, integer(3)); /* it was in no line */
    assert_broken(v, integer(-1));
    assert_broken(v, words(REPLY_STRING, "1"));
}

static struct outcome after_seen(
    const struct verb *verb, const char *value, int64_t pttl)
{
    struct reply items[2] = {words(REPLY_STRING, value), integer(pttl)};
    return after(verb, array(items, 2));
}

static void test_inspect(void **state)
{
    const struct verb *v = &verbs[VERB_INSPECT];
    struct outcome o;

    (void)state;
    o = after_seen(v, "somebody", 77);
    assert_int_equal(o.kind, OUTCOME_SEEN);
    assert_slice(o.value, "somebody");
    assert_int_equal(o.left_ms, 77);
    o = after_seen(v, "", -1);
    assert_int_equal(o.kind, OUTCOME_SEEN);
    assert_int_equal(o.left_ms, LEFT_FOREVER);
    assert_outcome(v, array(NULL, 0), OUTCOME_FREE, LEFT_UNKNOWN);
    assert_refused(v, "WRONGTYPE x", FAULT_WRONG_TYPE);
    assert_broken(v, nil);
    assert_broken(v, integer(0));
    struct reply one = words(REPLY_STRING, "x");
    assert_broken(v, array(&one, 1));
    struct reply swapped[2] = {integer(1), words(REPLY_STRING, "x")};
    assert_broken(v, array(swapped, 2));
    struct reply three[3] = {words(REPLY_STRING, "x"), integer(1), integer(1)};
    assert_broken(v, array(three, 3));
}

static void test_inspect_with_token(void **state)
{
    const struct verb *v = &inspect_token;
    struct outcome o;

    (void)state;
    o = after_seen(v, TOKEN, 500);
    assert_int_equal(o.kind, OUTCOME_MINE);
    assert_int_equal(o.left_ms, 500);
    assert_int_equal(after_seen(v, TOKEN "@a", 5).kind, OUTCOME_NOT_MINE);
    assert_int_equal(after_seen(v, "", 5).kind, OUTCOME_NOT_MINE);
    assert_outcome(v, array(NULL, 0), OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

static void test_wrong_type_is_not_ours(void **state)
{
    static const char error[] =
        "ERR Error running script (call to f_x): @user_script:1: -WRONGTYPE "
        "Operation against a key holding the wrong kind of value";
    const struct verb *with_token[] = {
        &verbs[VERB_EXTEND], &verbs[VERB_RELEASE], &inspect_token};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct outcome o = after(with_token[i], words(REPLY_ERROR, error));
        assert_int_equal(o.kind, OUTCOME_NOT_MINE);
        assert_slice(o.text, error);
    }
}

static void test_noscript_then_eval(void **state)
{
    struct reply noscript =
        words(REPLY_ERROR, "NOSCRIPT No matching script. Please use EVAL.");
    struct command_cache kept = {0};

    (void)state;
    for (int kind = VERB_EXTEND; kind <= VERB_INSPECT; kind++) {
        static struct exchange x;
        struct buf out = {0}, eval = {0};

        dialect_begin(&dialect);
        exchange_begin(&x, &verbs[kind], &kept);
        assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
        assert_int_equal(exchange_reply(&x, &noscript), EXCHANGE_AGAIN);
        buf_clear(&out);
        assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
        assert_true(command_verb_eval(&eval, &x.strategy->form, &verbs[kind]));
        assert_int_equal(buf_len(&out), buf_len(&eval));
        assert_memory_equal(buf_head(&out), buf_head(&eval), buf_len(&eval));
        buf_free(&out);
        buf_free(&eval);

        /* Not for ever. */
        assert_int_equal(exchange_reply(&x, &noscript), EXCHANGE_DONE);
        assert_int_equal(x.outcome.kind, OUTCOME_FAULT);
        assert_int_equal(x.outcome.fault, FAULT_RETRY);
        assert_false(x.outcome.unsure);
    }
    command_cache_free(&kept);
}

static void test_eval_decides_as_evalsha(void **state)
{
    static struct exchange x;
    struct buf out = {0};
    struct reply noscript = words(REPLY_ERROR, "NOSCRIPT No matching script.");
    struct reply deleted = integer(1);

    (void)state;
    start(&x, &verbs[VERB_RELEASE], 1);
    assert_int_equal(exchange_reply(&x, &noscript), EXCHANGE_AGAIN);
    assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
    assert_int_equal(exchange_reply(&x, &deleted), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_MINE);
    assert_int_equal(x.outcome.text.len, 0);
    buf_free(&out);
}

/* How the token is written decides what may follow, and outlives the verb. */
static void test_how_it_is_written(void **state)
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
    static struct exchange x, heir;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct verb verb = {.kind = VERB_RELEASE, .token = slice_of("t")};
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
        verb.kind = i == 1 ? VERB_JOIN : VERB_ACQUIRE;
        exchange_restart(&x, &verb, NULL);
        assert_int_equal(x.written, WRITTEN_TOKEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acquire),
        cmocka_unit_test(test_acquire_bytes),
        cmocka_unit_test(test_acquire_with_time_left),
        cmocka_unit_test(test_first_words_outlive_the_second_reply),
        cmocka_unit_test(test_extend),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_inspect_with_token),
        cmocka_unit_test(test_wrong_type_is_not_ours),
        cmocka_unit_test(test_noscript_then_eval),
        cmocka_unit_test(test_eval_decides_as_evalsha),
        cmocka_unit_test(test_how_it_is_written),
    };
    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
