/* SPDX-License-Identifier: MIT */
/* Delays after rounds over several servers that were lost to other clients:
 * they grow by a step for each, and only for these. */
#include "core/contention.h"
#include "unit/scene_votes.h"

#define SEEDS 200
#define FIRST (10 * MS)
#define MOST (80 * MS)

/* Delays of all seeds lie in the upper half of span, and reach both ends. */
static void assert_span(
    uint64_t first, uint64_t most, unsigned lost, uint64_t round, uint64_t span)
{
    uint64_t least = UINT64_MAX, longest = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct backoff b;
        backoff_init(&b, first, most, seed);
        uint64_t delay = contention_delay(&b, lost, round);
        assert_in_range(delay, span - span / 2, span);
        least = earlier(least, delay);
        longest = later(longest, delay);
    }
    assert_true(least <= span - span / 2 + span / 20);
    assert_true(longest >= span - span / 20);
}

static void the_first_is_the_first_delay(void **state)
{
    (void)state;
    assert_span(10 * MS, 250 * MS, 1, 0, 10 * MS);
    assert_span(10 * MS, 250 * MS, 1, 100 * MS, 10 * MS);
    assert_span(40 * MS, 40 * MS, 1, MS, 40 * MS);
}

static void grows_by_the_step(void **state)
{
    (void)state;
    for (unsigned lost = 2; lost <= 45; lost++)
        assert_span(10 * MS, 250 * MS, lost, MS, (lost + 5) * 5 * MS);
    assert_span(10 * MS, 250 * MS, 46, MS, 250 * MS);
    assert_span(10 * MS, 250 * MS, 2, 3 * MS, 105 * MS);
}

static void the_step_is_a_part_of_the_first_delay(void **state)
{
    (void)state;
    assert_span(10 * MS, 250 * MS, 2, 0, 35 * MS / 2);
    assert_span(10 * MS, 250 * MS, 11, MS / 10, 40 * MS);
    assert_span(100 * MS, 250 * MS, 2, MS, 175 * MS);
}

static void keeps_to_the_limits(void **state)
{
    (void)state;
    assert_span(10 * MS, 250 * MS, 2, 20 * MS, 250 * MS);
    assert_span(10 * MS, 250 * MS, UINT_MAX, UINT64_MAX, 250 * MS);
    assert_span(10 * MS, 250 * MS, 2, UINT64_MAX / 5 + 1, 250 * MS);
    assert_span(10 * MS, 12 * MS, 2, MS, 12 * MS);
    assert_span(MS, 3600000 * MS, UINT_MAX, 3600000 * MS, 3600000 * MS);
    struct backoff b;
    backoff_init(&b, 1, 1, 7);
    for (unsigned lost = 1; lost < 20; lost++)
        assert_int_equal(contention_delay(&b, lost, 0), 1);
}

/* ----------------------------------------------------- rounds of an acquire */

static void start_seed(const char *with, uint64_t seed)
{
    scene_begin(&acquire_machine, with);
    acq.terms.wait_until = acq.terms.end = NEVER;
    acq.backoff.seed = seed;
}

/* The round is lost, by these answers 1 ms later. Returns the delay; then the
 * next round begins. */
static uint64_t lose(const char *answers)
{
    scene.now += MS;
    scene_play(answers);
    assert_int_equal(acquire_verdict(&acq), VERDICT_OPEN);
    uint64_t delay = acquire_wake(&acq) - scene.now;
    scene_play("wake");
    scene.trace[0] = '\0';
    return delay;
}

static void each_lost_round_is_a_rival(void **state)
{
    static const uint64_t spans[] = {
        10, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 80, 80};
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        start_seed("servers=3", seed);
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            uint64_t delay = lose(i % 2 ? "g0 b1 b2" : "b0 b1");
            assert_in_range(delay, spans[i] * MS / 2, spans[i] * MS);
        }
        /* Another call begins with the first delay. */
        start_seed("servers=3", seed);
        assert_in_range(lose("b0 b1"), FIRST / 2, FIRST);
    }
}

static void a_failed_round_is_no_rival(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        start_seed("servers=3", seed);
        assert_in_range(lose("f0 f1"), FIRST / 2, FIRST);
        assert_in_range(lose("g0 f1 f2"), FIRST, 2 * FIRST);
        assert_in_range(lose("b0 b1"), FIRST / 2, FIRST);
        assert_in_range(lose("f0 f1"), 2 * FIRST, 4 * FIRST);
        assert_in_range(lose("b0 b1"), 35 * MS / 2, 35 * MS);
    }
}

static void one_server_doubles(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        start_seed("", seed);
        assert_in_range(lose("b"), FIRST / 2, FIRST);
        for (uint64_t span = 2 * FIRST; span <= MOST; span *= 2)
            assert_in_range(lose("b"), span / 2, span);
    }
}

/* A server that did not answer makes the round as long as its time, which says
 * nothing about the network. */
static void silence_is_not_a_long_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        start_seed("servers=5", seed);
        lose("b0 b1 b2");
        scene_play("g0 g1 b2 wake"); /* two are silent */
        assert_in_range(
            acquire_wake(&acq) - scene.now, 35 * MS / 4, 35 * MS / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_the_first_delay),
        cmocka_unit_test(grows_by_the_step),
        cmocka_unit_test(the_step_is_a_part_of_the_first_delay),
        cmocka_unit_test(keeps_to_the_limits),
        cmocka_unit_test(each_lost_round_is_a_rival),
        cmocka_unit_test(a_failed_round_is_no_rival),
        cmocka_unit_test(one_server_doubles),
        cmocka_unit_test(silence_is_not_a_long_step),
    };
    return cmocka_run_group_tests_name("rivals", tests, NULL, NULL);
}
