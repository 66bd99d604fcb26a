/* SPDX-License-Identifier: MIT */
/* The clock is the one that counts suspend, and it does not go back. */
#include "support/test.h"

#include <time.h>

#include "base/clock.h"
#include "base/deadline.h"

static uint64_t boottime(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void test_is_boottime(void **state)
{
    (void)state;
    uint64_t before = boottime();
    uint64_t now = clock_now();
    uint64_t after = boottime();
    assert_true(before <= now && now <= after);
}

static void test_never_back_nor_zero(void **state)
{
    uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_now();
        assert_true(now >= last && now != 0);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_boottime),
        cmocka_unit_test(test_never_back_nor_zero),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
