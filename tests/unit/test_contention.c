/* SPDX-License-Identifier: MIT */
/* Delays after rounds over several servers that were lost to other clients:
 * they grow by a step for each, and only for these. */
#include "support/test.h"

#include "core/contention.h"
#include "unit/acquire_rig.h"

#define SEEDS 200

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

static void start_seed(struct acquire *a, unsigned servers, uint64_t seed)
{
    start(a, servers, NEVER, NEVER);
    a->backoff.seed = seed;
}

/* The round began at now; this is what servers 0, 1, ... say 1 ms later.
 * Returns the delay. */
static uint64_t lose(struct acquire *a, const char *said, uint64_t now)
{
    play(a, said, now + MS);
    drain(a, (char[WORDS_MAX]){0});
    assert_int_equal(acquire_verdict(a), VERDICT_OPEN);
    return acquire_wake(a) - (now + MS);
}

static uint64_t begin_next(struct acquire *a)
{
    uint64_t now = next_round(a);
    drain(a, (char[WORDS_MAX]){0});
    return now;
}

static void each_lost_round_is_a_rival(void **state)
{
    static const uint64_t spans[] = {
        10, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 80, 80};
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct acquire a;
        uint64_t now = T0;
        start_seed(&a, 3, seed);
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            uint64_t delay = lose(&a, i % 2 ? "gbb" : "bb", now);
            assert_in_range(delay, spans[i] * MS / 2, spans[i] * MS);
            now = begin_next(&a);
        }
        start_seed(&a, 3, seed); /* another call begins with the first delay */
        assert_in_range(lose(&a, "bb", T0), FIRST / 2, FIRST);
    }
}

static void a_failed_round_is_no_rival(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct acquire a;
        start_seed(&a, 3, seed);
        assert_in_range(lose(&a, "ff", T0), FIRST / 2, FIRST);
        assert_in_range(lose(&a, "gff", begin_next(&a)), FIRST, 2 * FIRST);
        assert_in_range(lose(&a, "bb", begin_next(&a)), FIRST / 2, FIRST);
        assert_in_range(lose(&a, "ff", begin_next(&a)), 2 * FIRST, 4 * FIRST);
        assert_in_range(lose(&a, "bb", begin_next(&a)), 35 * MS / 2, 35 * MS);
    }
}

static void one_server_doubles(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct acquire a;
        start_seed(&a, 1, seed);
        assert_in_range(lose(&a, "b", T0), FIRST / 2, FIRST);
        for (uint64_t span = 2 * FIRST; span <= MOST; span *= 2)
            assert_in_range(lose(&a, "b", begin_next(&a)), span / 2, span);
    }
}

/* A server that did not answer makes the round as long as its time, which says
 * nothing about the network. */
static void silence_is_not_a_long_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct acquire a;
        uint64_t now;
        start_seed(&a, 5, seed);
        lose(&a, "bbb", T0);
        now = begin_next(&a);
        play(&a, "ggb", now);
        acquire_tick(&a, now + BUDGET); /* two are silent */
        drain(&a, (char[WORDS_MAX]){0});
        assert_in_range(
            acquire_wake(&a) - (now + BUDGET), 35 * MS / 4, 35 * MS / 2);
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
