/* SPDX-License-Identifier: MIT */
/* Values in their order, and that there is a limit to them. */
#include "support/test.h"

#include "base/reply_values.h"

static struct reply_values leaves;

static int tear_down(void **state)
{
    (void)state;
    reply_values_free(&leaves);
    return 0;
}

static void check(size_t i, const char *text, size_t len)
{
    assert_true(i < leaves.count);
    assert_false(leaves.list[i].nil);
    assert_int_equal(leaves.list[i].len, len);
    assert_memory_equal(
        buf_head(&leaves.bytes) + leaves.list[i].at, text, len + 1);
}

static void they_keep_their_order(void **state)
{
    (void)state;
    reply_values_add(&leaves, slice_of("one"));
    reply_values_add(&leaves, (struct slice){"a\0b", 3});
    reply_values_add(&leaves, slice_of(""));
    reply_values_add_nil(&leaves);
    reply_values_add_number(&leaves, INT64_MIN);
    assert_int_equal(leaves.count, 5);
    check(0, "one", 3);
    check(1, "a\0b", 3);
    check(2, "", 0);
    assert_true(leaves.list[3].nil);
    check(4, "-9223372036854775808", 20);
    for (int i = 0; i < 1000; i++)
        reply_values_add_number(&leaves, i);
    check(0, "one", 3);
    check(1004, "999", 3);
    reply_values_clear(&leaves);
    assert_int_equal(leaves.count, 0);
    reply_values_add(&leaves, slice_of("two"));
    check(0, "two", 3);
}

/* A part of an answer would be taken for all of it. */
static void too_much_is_nothing(void **state)
{
    (void)state;
    static char bytes[REPLY_VALUES_MAX];
    reply_values_add(&leaves, slice_of("one"));
    reply_values_add(&leaves, (struct slice){bytes, REPLY_VALUES_MAX});
    assert_true(leaves.full);
    assert_int_equal(leaves.count, 0);
    reply_values_add(&leaves, slice_of("two"));
    assert_int_equal(leaves.count, 0);
    reply_values_clear(&leaves);
    assert_false(leaves.full);
    size_t added = 0;
    for (; !leaves.full; added++) {
        reply_values_add_nil(&leaves); /* which take room, too */
        assert_true(added < REPLY_VALUES_MAX / 8);
    }
    assert_true(added > 10000);
    assert_int_equal(leaves.count, 0);
    assert_false(leaves.starved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(they_keep_their_order, tear_down),
        cmocka_unit_test_teardown(too_much_is_nothing, tear_down),
    };
    return cmocka_run_group_tests_name("leaves", tests, NULL, NULL);
}
