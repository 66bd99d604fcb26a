/* SPDX-License-Identifier: MIT */
/*
 * Commands as bytes, and that a kept one is the same bytes. What each verb
 * sends is in the tests with strategy_rig.h, and in tests/fuzz/strategies.h.
 */
#include "support/test.h"

#include <stdlib.h>

#include "wire/strategies.h"

static void assert_bytes(struct buf *b, const char *bytes, size_t len)
{
    assert_int_equal(buf_len(b), len);
    assert_memory_equal(buf_head(b), bytes, len);
    buf_clear(b);
}

static struct verb verb_of(enum verb_kind kind, const char *token)
{
    return (struct verb){
        .kind = kind,
        .key = slice_of("invoice:42"),
        .token = slice_of(token),
        .ttl_ms = 30000,
    };
}

/* Of the way that is tried first. */
static const struct command_form *form_of(enum verb_kind kind)
{
    return &strategies_at(kind, 0)->form;
}

/* The verbs whose command is cached. */
static const enum verb_kind cached[] = {
    VERB_ACQUIRE, VERB_EXTEND, VERB_RELEASE, VERB_INSPECT, VERB_CAP_TTL};

static void test_append_is_binary_safe(void **state)
{
    struct buf out = {0};
    struct slice argv[COMMAND_ARGS] = {
        slice_of("ECHO"), {"a\0\r\n", 4}, {NULL, 0}};

    (void)state;
    assert_true(command_append(&out, 3, argv));
    static const char bytes[] =
        "*3\r\n$4\r\nECHO\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n";
    assert_bytes(&out, bytes, sizeof(bytes) - 1);

    for (int i = 0; i < COMMAND_ARGS; i++)
        argv[i] = slice_of("x");
    assert_true(command_append(&out, COMMAND_ARGS, argv));
    assert_int_equal(buf_len(&out), 5 + COMMAND_ARGS * 7);
    buf_free(&out);
}

/* Through kept and without it: the same bytes, after what is queued. */
static void assert_kept_equal(
    const struct verb *verb, struct cached_command **kept)
{
    struct buf plain = {0}, out = {0};

    assert_true(command_verb(&plain, form_of(verb->kind), verb, NULL));
    assert_true(buf_append(&out, "queued", 6));
    assert_true(command_verb(&out, form_of(verb->kind), verb, kept));
    buf_consume(&out, 6);
    assert_bytes(&out, buf_head(&plain), buf_len(&plain));
    buf_free(&plain);
    buf_free(&out);
}

static void test_kept_is_the_same(void **state)
{
    /* Keys that hold the tokens, and lengths with one to three digits. */
    char long_key[150];
    memset(long_key, 'k', sizeof(long_key));
    const struct slice keys[] = {slice_of("aaaaa"), slice_of("bbbbb"),
        slice_of("$5\r\naaaaa\r\n"), {"\0", 1}, {long_key, sizeof(long_key)}};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct command_cache kept = {0};
        for (size_t n = 0; n < sizeof(cached) / sizeof(cached[0]); n++) {
            enum verb_kind kind = cached[n];
            struct cached_command **k = command_cached(&kept, kind);
            struct verb verb = verb_of(kind, "aaaaa");
            verb.key = keys[i];
            assert_kept_equal(&verb, k);
            const struct cached_command *before = *k;
            assert_non_null(before);
            verb.token = slice_of("bbbbb");
            assert_kept_equal(&verb, k);
            assert_ptr_equal(*k, before);
            /* Another ttl, another length. */
            verb.ttl_ms = 5;
            assert_kept_equal(&verb, k);
            verb.token = slice_of("0123456789-much-longer");
            assert_kept_equal(&verb, k);
            verb.token = slice_of("0123456789-MUCH-LONGER");
            assert_kept_equal(&verb, k);
        }
        command_cache_free(&kept);
        assert_null(*command_cached(&kept, VERB_ACQUIRE));
        command_cache_free(&kept);
    }
}

static void test_kept_serves_without_formatting(void **state)
{
    struct command_cache kept = {0};
    struct buf out = {0};

    (void)state;
    for (size_t n = 0; n < sizeof(cached) / sizeof(cached[0]); n++) {
        enum verb_kind kind = cached[n];
        struct cached_command **k = command_cached(&kept, kind);
        struct verb verb = verb_of(kind, "aaaaa");
        assert_true(command_verb(&out, form_of(verb.kind), &verb, k));
        /* Marked, so that bytes formatted anew would show. */
        (*k)->bytes[0] = '!';
        verb.token = slice_of("ccccc");
        if (kind == VERB_RELEASE || kind == VERB_INSPECT)
            verb.ttl_ms = 1; /* is no part of these */
        if (kind == VERB_INSPECT)
            verb.token = slice_of("");
        buf_clear(&out);
        assert_true(command_verb(&out, form_of(verb.kind), &verb, k));
        assert_int_equal(buf_head(&out)[0], '!');
        assert_int_equal(buf_len(&out), (*k)->len);
        buf_clear(&out);
    }
    command_cache_free(&kept);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_is_binary_safe),
        cmocka_unit_test(test_kept_is_the_same),
        cmocka_unit_test(test_kept_serves_without_formatting),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
