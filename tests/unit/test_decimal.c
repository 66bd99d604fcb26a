/* SPDX-License-Identifier: MIT */
/* Decimal text against what printf() writes, at the edges of each length. */
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"

static void assert_text(struct slice text, const char *expected)
{
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);
}

static void check(uint64_t number)
{
    struct decimal room;
    char expected[32];

    snprintf(expected, sizeof(expected), "%" PRIu64, number);
    assert_text(decimal_of(&room, number), expected);
    snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)number);
    assert_text(decimal_signed(&room, (int64_t)number), expected);
}

static void test_numbers(void **state)
{
    (void)state;
    check(0);
    check((uint64_t)INT64_MIN);
    check((uint64_t)INT64_MAX);
    check(UINT64_MAX);
    for (uint64_t n = 1; n < UINT64_MAX / 10; n *= 10) {
        check(n - 1);
        check(n);
        check(0 - n);
        check(0 - (n - 1));
    }
    check(UINT64_MAX / 10 * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
