/* SPDX-License-Identifier: MIT */
/* Delays grow, stay in the upper half of their span, and end at the most. */
#include "support/test.h"

#include "base/backoff.h"

static void test_range_of_each_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct backoff b;
        backoff_init(&b, 100, 1500, seed);
        uint64_t spans[] = {100, 200, 400, 800, 1500, 1500, 1500};
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
            assert_in_range(
                backoff_next(&b), spans[i] - spans[i] / 2, spans[i]);
    }
}

static void test_reset_begins_again(void **state)
{
    struct backoff b;

    (void)state;
    backoff_init(&b, 100, 100000, 7);
    for (int i = 0; i < 5; i++)
        backoff_next(&b);
    backoff_reset(&b);
    assert_in_range(backoff_next(&b), 50, 100);
    assert_in_range(backoff_next(&b), 100, 200);
}

static void test_never_zero_nor_overflowing(void **state)
{
    struct backoff b;

    (void)state;
    backoff_init(&b, 1, UINT64_MAX, 1);
    uint64_t span = 1;
    for (int i = 0; i < 64; i++) {
        assert_in_range(backoff_next(&b), span - span / 2, span);
        span *= 2;
    }
    for (int i = 0; i < 100; i++)
        assert_true(backoff_next(&b) >= UINT64_MAX / 2);

    backoff_init(&b, 1, 1, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(backoff_next(&b), 1);
}

static void test_seeds_differ(void **state)
{
    struct backoff a, b;
    int same = 0;

    (void)state;
    backoff_init(&a, 1000000, 1000000, 1);
    backoff_init(&b, 1000000, 1000000, 2);
    for (int i = 0; i < 100; i++)
        same += backoff_next(&a) == backoff_next(&b);
    assert_in_range(same, 0, 3);
}

static void test_random_covers_its_range(void **state)
{
    struct backoff b;
    int count[10] = {0};

    (void)state;
    backoff_init(&b, 1, 1, 42);
    for (int i = 0; i < 10000; i++) {
        uint64_t n = backoff_random(&b, 10);
        assert_true(n < 10);
        count[n]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(count[i], 800, 1200);
    assert_int_equal(backoff_random(&b, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_of_each_step),
        cmocka_unit_test(test_reset_begins_again),
        cmocka_unit_test(test_never_zero_nor_overflowing),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_random_covers_its_range),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
