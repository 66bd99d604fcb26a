/* SPDX-License-Identifier: MIT */
/*
 * What is written is valid. What only looks like a token is in
 * tests/fuzz/token.c.
 */
#include "support/test.h"

#include "model/token.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static const struct share alone;

static void test_label(void **state)
{
    char longest[LABEL_MAX + 2];

    (void)state;
    assert_true(word_valid("db7:41233:backup", LABEL_MAX));
    assert_true(word_valid("!", LABEL_MAX));
    assert_true(word_valid("~@~", LABEL_MAX));
    assert_false(word_valid("", LABEL_MAX));
    assert_false(word_valid("two words", LABEL_MAX));
    assert_false(word_valid("tab\t", LABEL_MAX));
    assert_false(word_valid("caf\xc3\xa9", LABEL_MAX));
    assert_false(word_valid("\x7f", LABEL_MAX));
    memset(longest, 'x', sizeof(longest));
    longest[LABEL_MAX] = '\0';
    assert_true(word_valid(longest, LABEL_MAX));
    longest[LABEL_MAX] = 'x';
    longest[LABEL_MAX + 1] = '\0';
    assert_false(word_valid(longest, LABEL_MAX));
}

static void test_stamp(void **state)
{
    char token[TOKEN_MAX + 1];
    unsigned char random[16];

    (void)state;
    for (unsigned i = 0; i < 16; i++)
        random[i] = (unsigned char)(i << 4 | i);
    assert_int_equal(token_layout(token, alone, NULL), UUID_TEXT);
    assert_int_equal(strlen(token), UUID_TEXT);
    assert_false(token_valid(slice_of(token)));
    token_write(token, random, false);
    assert_string_equal(token, "00112233-4455-4677-8899-aabbccddeeff");

    assert_int_equal(token_layout(token, alone, "job:7"), UUID_TEXT + 6);
    memset(random, 0xff, sizeof(random));
    token_write(token, random, false);
    assert_string_equal(token, "ffffffff-ffff-4fff-bfff-ffffffffffff@job:7");
    memset(random, 0, sizeof(random));
    token_write(token, random, false);
    assert_string_equal(token, "00000000-0000-4000-8000-000000000000@job:7");
    assert_true(token_valid(slice_of(token)));
    token_write(token, random, true);
    assert_string_equal(token, "00000000-0000-8000-8000-000000000000@job:7");
    assert_true(token_valid(slice_of(token)));
}

static void test_longest(void **state)
{
    char token[TOKEN_MAX + 2];
    char label[LABEL_MAX + 1];

    (void)state;
    memset(label, 'l', LABEL_MAX);
    label[LABEL_MAX] = '\0';
    token[TOKEN_MAX + 1] = 'e';
    assert_int_equal(
        token_layout(token, (struct share){PERMITS_MAX, PERMITS_MAX}, label),
        TOKEN_MAX);
    token_write(token, (const unsigned char *)"0123456789abcdef", false);
    assert_int_equal(strlen(token), TOKEN_MAX);
    assert_int_equal(token[TOKEN_MAX + 1], 'e');
    assert_true(token_valid(slice_of(token)));
    assert_string_equal(token_label(slice_of(token)), label);
}

static void test_share(void **state)
{
    static const struct {
        struct share share;
        const char *label, *token;
    } rows[] = {
        {{0, 0}, NULL, UUID},
        {{0, 0}, "+1/4", UUID "@+1/4"},
        {{1, 0}, NULL, UUID "+1/0"},
        {{1, 0}, "job", UUID "+1/0@job"},
        {{1, 4}, NULL, UUID "+1/4"},
        {{4, 4}, "a@b", UUID "+4/4@a@b"},
        {{10, 2147483647}, NULL, UUID "+10/2147483647"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice token = slice_of(rows[i].token);
        char blank[TOKEN_MAX + 1];
        struct share read = token_share(token);
        const char *label = token_label(token);

        assert_true(token_valid(token));
        assert_int_equal(read.weight, rows[i].share.weight);
        assert_int_equal(read.permits, rows[i].share.permits);
        assert_int_equal(token_has_share(token), read.weight > 0);
        assert_int_equal(!label, !rows[i].label);
        if (label)
            assert_string_equal(label, rows[i].label);
        assert_int_equal(token_layout(blank, read, label), token.len);
        assert_string_equal(blank + UUID_TEXT, rows[i].token + UUID_TEXT);
    }
    assert_int_equal(token_share(slice_of(UUID "+1/1")).weight, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label),
        cmocka_unit_test(test_stamp),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
