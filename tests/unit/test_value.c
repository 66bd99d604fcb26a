/* SPDX-License-Identifier: MIT */
/*
 * Whose a value is, and when the lock is over: only what is certainly a time is
 * taken for one, and a token's own value is known by the token alone.
 */
#include "support/test.h"

#include "support/blanks.h"
#include "wire/timestamps/format.h"
#include "wire/timestamps/timestamps.h"
#include "wire/value.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HIGHEST "ffffffff-ffff-4fff-bfff-ffffffffffff"
#define LOWEST "00000000-0000-4000-8000-000000000000"

static const char ours[] = "1795202077" BLANKS;

/* ------------------------------------------------------------------- times */

static void test_end(void **state)
{
    (void)state;
    assert_int_equal(stamp_end(1795202077000), 1795202078);
    assert_int_equal(stamp_end(1795202077001), 1795202079);
    assert_int_equal(stamp_end(1795202077999), 1795202079);
}

static void test_format(void **state)
{
    char out[STAMP_ROOM];

    (void)state;
    assert_int_equal(stamp_format(out, slice_of(UUID), 1795202077), 138);
    assert_string_equal(out, "1795202077" BLANKS);
    assert_int_equal(
        stamp_format(out, slice_of(UUID "@db7"), 10000000000), 139);
    assert_string_equal(out, "10000000000" BLANKS);
    assert_int_equal(stamp_format(out, slice_of(HIGHEST), 99999999999), 139);
    assert_string_equal(out,
        "99999999999" BF BF BF BF BF BF BF BF BF BF BF BF B4 BF BF BF BB BF BF
            BF BF BF BF BF BF BF BF BF BF BF BF BF);
    assert_int_equal(stamp_format(out, slice_of(LOWEST), 1000000000), 138);
    assert_string_equal(out,
        "1000000000" B0 B0 B0 B0 B0 B0 B0 B0 B0 B0 B0 B0 B4 B0 B0 B0 B8 B0 B0 B0
            B0 B0 B0 B0 B0 B0 B0 B0 B0 B0 B0 B0);
    assert_int_equal(stamp_format(out, slice_of(UUID), 999999999), 0);
    assert_int_equal(stamp_format(out, slice_of(UUID), 100000000000), 0);
    assert_int_equal(stamp_format(out, slice_of(UUID), -1), 0);
}

static void test_times(void **state)
{
    static const struct {
        const char *value;
        enum stamp_kind kind;
        int64_t end_s;
    } cases[] = {
        {"1000000000", STAMP_FOREIGN, 1000000000},
        {"99999999999", STAMP_FOREIGN, 99999999999},
        {"1795202077.0", STAMP_FOREIGN, 1795202077},
        {"10000000000" BLANKS, STAMP_OURS, 10000000000},
        {"1700000000.123", STAMP_FOREIGN, 1700000001},
        {"10000000000.000000", STAMP_FOREIGN, 10000000000},
        /* However long it is. */
        {"1795202077.001512366075203566475363147076673981935", STAMP_FOREIGN,
            1795202078},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t end_s = 0;
        assert_int_equal(
            stamp_parse(slice_of(cases[i].value), &end_s), cases[i].kind);
        assert_int_equal(end_s, cases[i].end_s);
        assert_true(value_tells_end(slice_of(cases[i].value), &end_s));
    }
}

static void test_no_times(void **state)
{
    static const char *const values[] = {"", "0", "1", "-1", "999999999",
        "100000000000", "1795202077123", "1795202077123456", "0179520207",
        "01795202077", " 1795202077", "1795202077 ", "1795202077\t",
        "1795202077" BLANKS " ", "1795202077 " BLANKS, "1795202077" BLANKS "0",
        " 1795202077" BLANKS, "1795202077\n" BLANKS, "1795202077.5" BLANKS,
        "179520207" BLANKS, "1795202077\n", "+1795202077", "-1795202077",
        "1795202077.", ".1795202077", "1795202077.x", "1795202077.5.",
        "1795202077.5e3", "1795202077e0", "1795202077,5", "0x6b00c29d00",
        "1795202077x", "1,795,202,077", "inf", "nan", "a", UUID,
        UUID "@db7:1:x", "17952020-89ab-4def-8123-456789abcdef",
        "99999999999999999999999999", "1795202077.-5"};
    char longer[600];
    int64_t end_s;

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_int_equal(stamp_parse(slice_of(values[i]), &end_s), STAMP_NONE);
        assert_false(value_tells_end(slice_of(values[i]), &end_s));
    }
    struct slice zero = {"1795202077\0", 11};
    assert_int_equal(stamp_parse(zero, &end_s), STAMP_NONE);
    memset(longer, '1', sizeof(longer));
    longer[10] = '.';
    for (size_t len = 140; len < sizeof(longer); len++)
        assert_int_equal(
            stamp_parse((struct slice){longer, len}, &end_s), STAMP_NONE);
    assert_int_equal(stamp_parse((struct slice){NULL, 0}, &end_s), STAMP_NONE);
}

/* One blank more, less or other is no time, or another token's. */
static void test_blanks(void **state)
{
    char value[STAMP_ROOM];
    int64_t end_s;

    (void)state;
    size_t len = stamp_format(value, slice_of(UUID), 1795202077);
    assert_true(stamp_is_of((struct slice){value, len}, slice_of(UUID)));
    assert_false(stamp_is_of((struct slice){value, len}, slice_of(HIGHEST)));
    for (size_t i = 10; i < len; i++) {
        char was = value[i];
        assert_int_equal(
            stamp_parse((struct slice){value, i}, &end_s) != STAMP_NONE,
            i == 10);
        value[i] = was == ' ' ? '\t' : ' ';
        assert_int_equal(
            stamp_parse((struct slice){value, len}, &end_s), STAMP_OURS);
        assert_false(stamp_is_of((struct slice){value, len}, slice_of(UUID)));
        value[i] = '\n';
        assert_int_equal(
            stamp_parse((struct slice){value, len}, &end_s), STAMP_NONE);
        assert_false(stamp_is_of((struct slice){value, len}, slice_of(UUID)));
        value[i] = was;
    }
}

/* ------------------------------------------------------------------ tokens */

/* A token's own value, and no other. */
static void whose_it_is(void **state)
{
    static const struct {
        const char *value, *token;
        bool time,
            either; /* it is this token's: as a time; as that or as it is */
    } rows[] = {
        {ours, UUID, true, true},
        {ours, UUID "@any:1:label", true, true},
        {"1000000000" BLANKS, UUID, true, true},
        {ours, HIGHEST, false, false},
        {ours, LOWEST, false, false},
        {ours, "no token", false, false},
        {ours, "", false, false},
        {"1795202077", UUID, false, false},
        {"1795202077.5", UUID, false, false},
        {"179520207" BLANKS, UUID, false, false},
        {"", UUID, false, false},
        {UUID, UUID, false, true},
        {UUID, HIGHEST, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice value = slice_of(rows[i].value);
        struct slice token = slice_of(rows[i].token);
        if (stamp_is_of(value, token) != rows[i].time ||
            value_is_of(value, token) != rows[i].either)
            fail_msg("'%s' of '%s'", rows[i].value, rows[i].token);
    }
    assert_false(stamp_is_of(slice_of(ours), slice_of(ours)));
    assert_false(stamp_is_of(slice_of(ours), (struct slice){NULL, 0}));
}

static void whose_end_counts(void **state)
{
    static const struct {
        const char *value, *token;
        bool alone, interop;
    } cases[] = {
        {ours, "", true, true},
        {ours, UUID, true, true},
        {ours, HIGHEST, false, false},
        {"2000000000", "", false, true},
        {"2000000000", UUID, false, false},
        {UUID, UUID, false, false},
        {UUID, "", false, false},
        {"", "", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice value = slice_of(cases[i].value);
        struct slice token = slice_of(cases[i].token);
        assert_int_equal(
            value_of_tells_end(value, token, false), cases[i].alone);
        assert_int_equal(
            value_of_tells_end(value, token, true), cases[i].interop);
    }
}

/* What the writer of a timestamp hides in it is never shown. */
static void how_much_may_be_shown(void **state)
{
    static const struct {
        const char *value;
        size_t length;
    } cases[] = {
        {"", 0},
        {"x", 1},
        {"2000000000", 10},
        {"2000000000.5", 12},
        {"2000000000 ", 11},
        {"2000000000 1", 12},
        {"held since 2000000000 by cron", 29},
    };
    char stamp[STAMP_ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            value_shown(slice_of(cases[i].value)), cases[i].length);
    assert_int_equal(value_shown(slice_of(ours)), 10);
    for (int64_t end_s = 1000000000; end_s < 100000000000; end_s *= 3) {
        size_t length = stamp_format(stamp, slice_of(HIGHEST), end_s);
        size_t shown = value_shown((struct slice){stamp, length});
        assert_int_equal(shown, strspn(stamp, "0123456789"));
        assert_true(shown == 10 || shown == 11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(whose_it_is),
        cmocka_unit_test(whose_end_counts),
        cmocka_unit_test(how_much_may_be_shown),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
