/* SPDX-License-Identifier: MIT */
/*
 * The guard against a server whose clock is fast. No real server's clock can
 * be made so, hence machines of the core and a model of the server.
 */
#include "support/test.h"

#include "model/guard.h"
#include "unit/acquire_rig.h"

/* A server whose clock runs 0.9 % faster than ours. */
static uint64_t server_time(uint64_t now)
{
    return now / 1000 * 1009;
}

/* One process holds; another one asks every 0.1 ms, until it is
 * granted. */
static bool two_hold_by_drift(void)
{
    struct acquire first, second;
    uint64_t now = T0, ends = server_time(now) + TTL_MS * MS;
    start_try(&first, 1);
    say(&first, 0, granted(now), now + MS);
    assert_int_equal(acquire_verdict(&first), VERDICT_YES);
    while (server_time(now) < ends)
        now += MS / 10;
    begin(&second, 1, now, now, now + BUDGET);
    drain(&second, (char[WORDS_MAX]){0});
    say(&second, 0, granted(now), now);
    assert_int_equal(acquire_verdict(&second), VERDICT_YES);
    return now < first.deadline;
}

static void test_drift(void **state)
{
    (void)state;
    assert_false(two_hold_by_drift());
    guard_off[GUARD_DRIFT] = true;
    int64_t began_ms = test_now_ms();
    assert_true(two_hold_by_drift());
    print_message("without DRIFT: the clock of a server is 0.9 %% too fast; "
                  "two hold (%lld ms)\n",
        (long long)(test_now_ms() - began_ms));
    guard_off[GUARD_DRIFT] = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift),
    };
    return cmocka_run_group_tests_name("guard of clocks", tests, NULL, NULL);
}
