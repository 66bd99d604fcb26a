/* SPDX-License-Identifier: MIT */
/*
 * The guards of leases that no seed of the simulator misses: each is played as
 * a scene of the machine (unit/scene.h), with the guard and without it.
 */
#include "model/guard.h"
#include "unit/scene_parts.h"

static const struct {
    enum guard guard;
    const char *name, *harm, *steps, *with, *without;
} scenes[] = {
    {GUARD_LAPSED, "LAPSED",
        "a lease that was over, and told to be, is held again",
        "acquire g @988 extend m ?held", "T Sa =ok over held=0",
        "T Sa =ok Se =ok held=1"},
    {GUARD_LAPSED, "LAPSED",
        "a process that was stopped beyond its lease holds again",
        "acquire g rwake @988 rm ?held", "T Sa =ok rSe held=0",
        "T Sa =ok rSe renewed held=1"},
    {GUARD_RELEASED, "RELEASED",
        "a lock that was released is renewed, or found lost",
        "acquire g release m rwake", "T Sa =ok Sr =ok wake=never",
        "T Sa =ok Sr =ok rSe"},
};

static void play(size_t i)
{
    scene_begin(&life_machine, "renewed");
    scene_play(scenes[i].steps);
}

static void test_renew(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        play(i);
        assert_string_equal(scene.trace, scenes[i].with);
        guard_off[scenes[i].guard] = true;
        play(i);
        guard_off[scenes[i].guard] = false;
        assert_string_equal(scene.trace, scenes[i].without);
        print_message(
            "without %s: %s (0 ms)\n", scenes[i].name, scenes[i].harm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renew),
    };
    return cmocka_run_group_tests_name("guards of renewal", tests, NULL, NULL);
}
