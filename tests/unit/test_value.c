/* SPDX-License-Identifier: MIT */
/* Whose a value is, and whether it tells when the lock is over. */
#include "support/test.h"

#include "support/blanks.h"
#include "wire/timestamps/format.h"
#include "wire/value.h"

#define TOKEN "01234567-89ab-4def-8123-456789abcdef"
#define OTHER "11234567-89ab-4def-8123-456789abcdef"

static const char ours[] = "2000000000" BLANKS;

static void whose_it_is(void **state)
{
    (void)state;
    assert_true(value_is_of(slice_of(TOKEN), slice_of(TOKEN)));
    assert_true(value_is_of(slice_of(ours), slice_of(TOKEN)));
    assert_false(value_is_of(slice_of(TOKEN), slice_of(OTHER)));
    assert_false(value_is_of(slice_of(ours), slice_of(OTHER)));
    assert_false(value_is_of(slice_of("2000000000"), slice_of(TOKEN)));
    assert_false(value_is_of(slice_of(""), slice_of(TOKEN)));
}

static void which_end_it_tells(void **state)
{
    int64_t end_s = 0;

    (void)state;
    assert_true(value_tells_end(slice_of(ours), &end_s));
    assert_int_equal(end_s, 2000000000);
    assert_true(value_tells_end(slice_of("2000000001.5"), &end_s));
    assert_int_equal(end_s, 2000000002);
    assert_false(value_tells_end(slice_of(TOKEN), &end_s));
    assert_false(value_tells_end(slice_of(""), &end_s));
    assert_false(value_tells_end(slice_of("2000000000000"), &end_s));
}

static void whose_end_counts(void **state)
{
    static const struct {
        const char *value, *token;
        bool alone, interop;
    } cases[] = {
        {ours, "", true, true},
        {ours, TOKEN, true, true},
        {ours, OTHER, false, false},
        {"2000000000", "", false, true},
        {"2000000000", TOKEN, false, false},
        {TOKEN, TOKEN, false, false},
        {TOKEN, "", false, false},
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
        size_t length = stamp_format(stamp, slice_of(OTHER), end_s);
        size_t shown = value_shown((struct slice){stamp, length});
        assert_int_equal(shown, strspn(stamp, "0123456789"));
        assert_true(shown == 10 || shown == 11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_it_is),
        cmocka_unit_test(which_end_it_tells),
        cmocka_unit_test(whose_end_counts),
        cmocka_unit_test(how_much_may_be_shown),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
