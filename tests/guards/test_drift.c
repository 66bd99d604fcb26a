/* SPDX-License-Identifier: MIT */
/*
 * The guard against a server whose clock is fast. No real server's clock can
 * be made so, hence machines of the core and a model of the server.
 */
#include "model/guard.h"
#include "unit/scene_parts.h"

/* A server whose clock runs 0.9 % faster than ours. */
static uint64_t server_time(uint64_t now)
{
    return now / 1000 * 1009;
}

/* One process holds; another one asks every 0.1 ms, until it is
 * granted. */
static bool two_hold_by_drift(void)
{
    uint64_t now = T0, ends = server_time(now) + TTL_MS * MS;
    scene_begin(&acquire_machine, "");
    scene_play("@1 g");
    assert_string_equal(scene.trace, "T S =yes");
    while (server_time(now) < ends)
        now += MS / 10;
    return now < acq.deadline; /* when the server grants it to another one */
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
