/* SPDX-License-Identifier: MIT */
/* No sum of times becomes the past, and no wait is cut short by rounding. */
#include "support/test.h"

#include "base/deadline.h"

static void test_sums_saturate(void **state)
{
    (void)state;
    assert_int_equal(deadline_after(5, 7), 12);
    assert_true(deadline_after(NEVER - 1, 1) == NEVER);
    assert_true(deadline_after(NEVER - 1, 2) == NEVER);
    assert_true(deadline_after(1, NEVER) == NEVER);
    assert_true(deadline_after(NEVER, NEVER) == NEVER);
    assert_int_equal(ms_to_ns(3), 3000000);
    assert_true(ms_to_ns(UINT64_MAX / NS_PER_MS) != NEVER);
    assert_true(ms_to_ns(UINT64_MAX / NS_PER_MS + 1) == NEVER);
    assert_int_equal(deadline_after_ms(1, 2), 2000001);
    assert_true(deadline_after_ms(1, UINT64_MAX) == NEVER);
}

static void test_left(void **state)
{
    (void)state;
    assert_int_equal(deadline_left(10, 4), 6);
    assert_int_equal(deadline_left(10, 10), 0);
    assert_int_equal(deadline_left(10, 11), 0);
    assert_int_equal(earlier(3, 4), 3);
    assert_int_equal(earlier(NEVER, 4), 4);
    assert_int_equal(later(3, 4), 4);
}

static void test_poll_rounds_up(void **state)
{
    (void)state;
    assert_int_equal(deadline_poll_ms(NEVER, 1), -1);
    assert_int_equal(deadline_poll_ms(100, 100), 0);
    assert_int_equal(deadline_poll_ms(100, 200), 0);
    assert_int_equal(deadline_poll_ms(101, 100), 1);
    assert_int_equal(deadline_poll_ms(NS_PER_MS, 0), 1);
    assert_int_equal(deadline_poll_ms(NS_PER_MS + 1, 0), 2);
    assert_int_equal(deadline_poll_ms(NEVER - 1, 0), INT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_poll_rounds_up),
    };
    return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
