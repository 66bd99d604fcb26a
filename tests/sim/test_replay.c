/* SPDX-License-Identifier: MIT */
/*
 * A seed is worth printing only if it always gives the same history: played
 * twice, in another order and with other worlds in between. And a world must
 * have in it what it is there for.
 */
#include "support/test.h"

#include "sim/world.h"

#define SEEDS 10 /* are played twice */
#define MANY 100 /* have in them what they are there for */
#define CROWDS 40

static struct options options_of(unsigned servers, uint64_t seed)
{
    struct options options = OPTIONS_INIT;
    options.servers = servers;
    options.seed = seed;
    return options;
}

static void test_same_history(void **state)
{
    (void)state;
    static const unsigned servers[] = {1, 3, 4, 5};
    for (unsigned i = 0; i < 4; i++) {
        uint64_t hash[SEEDS + 1];
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct options o = options_of(servers[i], seed);
            hash[seed] = world_run(&o, stderr).hash;
            assert_true(seed == 1 || hash[seed] != hash[seed - 1]);
        }
        for (uint64_t seed = SEEDS; seed >= 1; seed--) {
            struct options o = options_of(servers[i], seed);
            assert_true(world_run(&o, stderr).hash == hash[seed]);
        }
    }
}

/* With one server there are lines, and what may happen to them. */
static void assert_enough(unsigned servers)
{
    uint64_t each[TROUBLES] = {0}, handed = 0, expired = 0, lined = 0;
    unsigned troubles = CLEAN_TROUBLES;
    for (uint64_t seed = 1; seed <= MANY; seed++) {
        struct options o = options_of(servers, seed);
        struct report r = world_run(&o, stderr);
        assert_int_equal(r.broken, 0);
        assert_false(r.too_few);
        assert_true(r.sum.grants >= 50 && r.sum.troubles >= 5);
        for (unsigned i = 0; i < TROUBLES; i++)
            each[i] += r.each[i];
        handed += r.sum.handed;
        expired += r.sum.expired;
        lined += r.sum.lined;
    }
    assert_true(handed >= 30 && expired >= 300);
    assert_true(servers == 1 ? lined >= 300 : lined == 0);
    troubles &=
        (1u << TROUBLE_PROMOTE) - 1; /* the rest is of --work failover */
    if (servers > 1)
        troubles &= (1u << TROUBLE_LINE) - 1;
    for (unsigned i = 0; i < TROUBLES; i++)
        assert_true((each[i] >= 10) == ((troubles & 1u << i) != 0));
}

static void test_enough_in_it(void **state)
{
    (void)state;
    assert_enough(1);
    assert_enough(3);
}

static void test_crowd(void **state)
{
    (void)state;
    uint64_t lined = 0, outside = 0, clocks = 0, longest = 0;
    for (uint64_t seed = 1; seed <= CROWDS; seed++) {
        struct options o = options_of(1, seed);
        o.kind = world_kind("crowd");
        struct report r = world_run(&o, stderr);
        assert_true(!r.broken && !r.too_few);
        assert_true(seed > SEEDS || r.hash == world_run(&o, stderr).hash);
        assert_true(r.sum.gaps > 0 && r.most.in_line >= 20);
        lined += r.sum.lined;
        outside += r.sum.turns_outside;
        clocks += r.each[TROUBLE_CLOCK];
        longest = later(longest, r.most.in_line);
    }
    assert_true(longest >= 150);
    assert_true(lined >= 1000 && outside >= 100);
    assert_true(clocks >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_history),
        cmocka_unit_test(test_enough_in_it),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
