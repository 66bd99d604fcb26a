/* SPDX-License-Identifier: MIT */
/*
 * Searches for the first seed that breaks an invariant without a guard, and
 * prints it for tests/guards/table.py. With the guard the same seed, and those
 * before it, break none.
 */
#ifndef NXLOCK_SIM_HARM_H
#define NXLOCK_SIM_HARM_H

#include "support/test.h"

#include <time.h>

#include "sim/world.h"

#define MOST_SEEDS 6000

/* What the programs do: locks, work that must be done once, or a crowd waits,
 * or several hold a lock, or share one beside somebody who wants it alone; or
 * replicas take over, which may have to have what clients write; or handles
 * have several names.
 */
static enum {
    WORK_LOCKS,
    WORK_ONCE,
    WORK_CROWD,
    WORK_PERMITS,
    WORK_READERS,
    WORK_FAILOVER,
    WORK_REPLICAS,
    WORK_SENTINELS,
    WORK_SEVERAL,
    WORK_PERMITS_FAILOVER,
    WORK_PERMITS_REPLICAS,
    WORK_PERMITS_SENTINELS
} work;
static const char *const work_words[] = {"", "work once, ", "work crowd, ",
    "work permits, ", "work readers, ", "work failover, ", "work replicas, ",
    "work sentinels, ", "work several, ", "work permits-failover, ",
    "work permits-replicas, ", "work permits-sentinels, "};

static struct options options_of(unsigned servers, const char *faults)
{
    struct options options = OPTIONS_INIT;
    options.servers = servers;
    options.once = work == WORK_ONCE;
    options.crowd = work == WORK_CROWD;
    options.permits = work == WORK_PERMITS || work >= WORK_PERMITS_FAILOVER;
    options.readers = work == WORK_READERS;
    options.failover = work == WORK_FAILOVER || work == WORK_PERMITS_FAILOVER;
    options.replicas = work == WORK_REPLICAS || work == WORK_PERMITS_REPLICAS;
    options.sentinels =
        work == WORK_SENTINELS || work == WORK_PERMITS_SENTINELS;
    options.several = work == WORK_SEVERAL;
    assert_true(troubles_parse(faults, &options.troubles));
    if (options.once)
        options.troubles &= ~FORGETFUL_TROUBLES;
    return options;
}

/* The first seed that breaks which; 0: none up to last. */
static uint64_t first_broken(
    unsigned servers, const char *faults, enum invariant which, uint64_t last)
{
    struct options options = options_of(servers, faults);
    options.checked = INVARIANT(which);
    for (uint64_t seed = 1; seed <= last; seed++) {
        options.seed = seed;
        unsigned broken = world_run(&options, NULL).broken;
        assert_true(broken == 0 || broken == which);
        if (broken)
            return seed;
    }
    return 0;
}

static double cpu_ms(clock_t since)
{
    return (double)(clock() - since) * 1000 / CLOCKS_PER_SEC;
}

static void assert_harm_with(const char *faults, const char *guard,
    unsigned servers, enum invariant which)
{
    guards_turn_on();
    assert_true(guard_turn_off(guard));
    clock_t began = clock();
    uint64_t seed = first_broken(servers, faults, which, MOST_SEEDS);
    guards_turn_on();
    print_message(
        "%u servers, %sfaults %s, without %s: seed %llu breaks %c%u (%.0f "
        "ms)\n",
        servers, work_words[work], faults, guard, (unsigned long long)seed,
        INVARIANT_LETTER(which), INVARIANT_NUMBER(which), cpu_ms(began));
    assert_true(seed != 0);
    uint64_t clean = seed > 200 ? 200 : seed;
    assert_true(first_broken(servers, faults, which, clean) == 0);
    struct options options = options_of(servers, faults);
    options.seed = seed;
    assert_true(world_run(&options, stderr).broken == 0);
}

static void assert_harm(
    const char *guard, unsigned servers, enum invariant which)
{
    assert_harm_with("clean", guard, servers, which);
}

#endif
