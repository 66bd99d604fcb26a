/* SPDX-License-Identifier: MIT */
/*
 * Fencing numbers over N servers: 10 000 grants in worlds full of trouble (10^5
 * with NXLOCK_FULL=1), and each number is higher than those before; also where
 * stepped clocks let two believe in the lock at once. What the highest number
 * of the votes alone is worth is shown on the same seeds, and so is what the
 * numbers rest on when servers forget: their clocks, and the restart guard.
 */
#include "support/test.h"

#include "sim/world.h"

#define MANY (getenv("NXLOCK_FULL") ? UINT64_C(100000) : UINT64_C(10000))
#define FEW 5000

static struct options fences_only(unsigned servers, const char *faults)
{
    struct options options = OPTIONS_INIT;
    options.servers = servers;
    options.checked = INVARIANT(I2);
    options.least_grants = 100;
    options.fences = true;
    assert_true(troubles_parse(faults, &options.troubles));
    return options;
}

/* Plays seeds until there were that many fences; returns how many broke. */
static unsigned play(struct options options, uint64_t least, uint64_t *last)
{
    unsigned broken = 0;
    uint64_t fences = 0;
    for (options.seed = 1; fences < least; options.seed++) {
        struct report r = world_run(&options, NULL);
        fences += r.fences;
        broken += r.broken != 0;
    }
    *last = options.seed - 1;
    return broken;
}

/* The same seeds, naively. */
static unsigned replay(struct options options, uint64_t last)
{
    unsigned broken = 0;
    for (options.seed = 1; options.seed <= last; options.seed++)
        broken += world_run(&options, NULL).broken != 0;
    return broken;
}

/* One of the first seeds breaks an invariant. */
static bool breaks_within(struct options options, uint64_t last)
{
    for (options.seed = 1; options.seed <= last; options.seed++)
        if (world_run(&options, NULL).broken != 0)
            return true;
    return false;
}

#define FORGETTING (1u << TROUBLE_WIPE | 1u << TROUBLE_REWIND)

static void compare(
    unsigned servers, const char *faults, unsigned never, uint64_t least)
{
    uint64_t last;
    struct options options = fences_only(servers, faults);
    options.troubles &= ~never;
    assert_int_equal(play(options, least, &last), 0);
    guard_turn_off("write-back");
    last = last < 200 ? last : 200;
    unsigned broken = replay(options, last);
    guards_turn_on();
    print_message("%u servers, %s: the naive way fails in %u of %llu seeds\n",
        servers, faults, broken, (unsigned long long)last);
    assert_true(broken > 0);
}

static void test_grow(void **state)
{
    (void)state;
    compare(3, "clean", 0, MANY);
    compare(4, "clean", 0, FEW);
    compare(5, "clean", 0, FEW);
}

/* Of servers that do not forget: see test_forgetful(). */
static void test_grow_though_two_hold(void **state)
{
    (void)state;
    compare(3, "clean,skew", FORGETTING, MANY / 4);
    compare(5, "clean,skew", FORGETTING, MANY / 4);
}

/* Servers that keep their data need no clock at all. */
static void test_without_floor(void **state)
{
    (void)state;
    uint64_t last;
    struct options options = fences_only(3, "clean,skew,apart");
    options.troubles &= ~FORGETTING;
    guard_turn_off("fence-floor");
    assert_int_equal(play(options, FEW, &last), 0);
    options = fences_only(3, "clean"); /* but those that forget do */
    assert_true(breaks_within(options, 500));
    guards_turn_on();
}

/* When servers forget, their clocks must differ by less than the time for
 * which they have no vote; and they must have none. */
static void test_forgetful(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers += 2) {
        struct options options = fences_only(servers, "clean,apart");
        assert_true(breaks_within(options, 500));
    }
    struct options options = fences_only(1, "clean");
    guard_turn_off("restarts");
    assert_true(breaks_within(options, 2000));
    guards_turn_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_grow_though_two_hold),
        cmocka_unit_test(test_without_floor),
        cmocka_unit_test(test_forgetful),
    };
    return cmocka_run_group_tests_name("fences", tests, NULL, NULL);
}
