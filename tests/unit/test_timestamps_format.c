/* SPDX-License-Identifier: MIT */
/* Only what is certainly a time is taken for one, and a token's own value is
 * known by the token alone. */
#include "support/test.h"

#include "support/blanks.h"
#include "wire/timestamps/format.h"
#include "wire/timestamps/timestamps.h"
#include "wire/value.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HIGHEST "ffffffff-ffff-4fff-bfff-ffffffffffff"
#define LOWEST "00000000-0000-4000-8000-000000000000"

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
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_int_equal(stamp_parse(slice_of(values[i]), &end_s), STAMP_NONE);
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

/* A token's own value, and no other. */
static void test_tokens(void **state)
{
    struct slice value = slice_of("1795202077" BLANKS);

    (void)state;
    assert_true(stamp_is_of(value, slice_of(UUID)));
    assert_true(stamp_is_of(value, slice_of(UUID "@any:1:label")));
    assert_true(stamp_is_of(slice_of("1000000000" BLANKS), slice_of(UUID)));
    assert_false(stamp_is_of(value, slice_of(HIGHEST)));
    assert_false(stamp_is_of(value, slice_of(LOWEST)));
    assert_false(stamp_is_of(slice_of(UUID), slice_of(UUID)));
    assert_false(stamp_is_of(slice_of("1795202077"), slice_of(UUID)));
    assert_false(stamp_is_of(slice_of("1795202077.5"), slice_of(UUID)));
    assert_false(stamp_is_of(slice_of("179520207" BLANKS), slice_of(UUID)));
    assert_false(stamp_is_of(value, slice_of("no token")));
    assert_false(stamp_is_of(value, value));
    assert_false(stamp_is_of(value, (struct slice){NULL, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
