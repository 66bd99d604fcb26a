/* SPDX-License-Identifier: MIT */
/*
 * Fencing numbers over N servers: 10 000 grants in worlds full of trouble (10^5
 * with NXLOCK_FULL=1), and each number is higher than those before; also where
 * stepped clocks let two believe in the lock at once, and from servers that
 * keep their data without any clock. test_harm.c has what breaks without the
 * guards, and what the numbers rest on when servers forget.
 */
#define TEST_TIMEOUT_S 280 /* 10 000 fences, on a busy machine */
#include "support/test.h"

#include "sim/world.h"

#define MANY (getenv("NXLOCK_FULL") ? UINT64_C(100000) : UINT64_C(10000))
#define FEW 5000

#define FORGETTING (1u << TROUBLE_WIPE | 1u << TROUBLE_REWIND)

/* Plays seeds until there were that many fences, and none was out of order. */
static void play(
    unsigned servers, const char *faults, unsigned never, uint64_t least)
{
    struct options options = OPTIONS_INIT;
    uint64_t fences = 0;
    options.servers = servers;
    options.checked = INVARIANT(I2);
    options.least_grants = 100;
    options.fences = true;
    assert_true(troubles_parse(faults, &options.troubles));
    options.troubles &= ~never;
    for (options.seed = 1; fences < least; options.seed++) {
        struct report r = world_run(&options, stderr);
        fences += r.sum.fences;
        assert_int_equal(r.broken, 0);
    }
}

static void test_grow(void **state)
{
    (void)state;
    play(3, "clean", 0, MANY);
    play(4, "clean", 0, FEW);
    play(5, "clean", 0, FEW);
}

/* Of servers that do not forget. */
static void test_grow_though_two_hold(void **state)
{
    (void)state;
    play(3, "clean,skew", FORGETTING, MANY / 4);
    play(5, "clean,skew", FORGETTING, MANY / 4);
}

static void test_without_a_clock(void **state)
{
    (void)state;
    guard_turn_off("fence-floor");
    play(3, "clean,skew,apart", FORGETTING, FEW);
    guards_turn_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_grow_though_two_hold),
        cmocka_unit_test(test_without_a_clock),
    };
    return cmocka_run_group_tests_name("fences", tests, NULL, NULL);
}
