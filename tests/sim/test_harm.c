/* SPDX-License-Identifier: MIT */
/*
 * The checker can only be trusted if it finds what is wrong: with each guard
 * turned off, the very seeds that are clean with it break the invariant that
 * it is there for. And clocks that no lease can bear do break exclusion.
 * tests/guards/table.py reads the lines that are printed here.
 */
#include "sim/harm.h"

static void test_two_holders(void **state)
{
    (void)state;
    static const char *const guards[] = {"drift", "recheck", "restarts",
        "compare", "continuity", "shorten", "expired"};
    for (unsigned i = 0; i < sizeof(guards) / sizeof(*guards); i++) {
        assert_harm(guards[i], 1, I1);
        assert_harm(guards[i], 3, I1);
        assert_harm(guards[i], 5, I1);
    }
    assert_harm("send-time", 1, I1);
    assert_harm("fresh-token", 1, I1);
    assert_harm_with("rewind", "adopt", 1, I1);
}

static void test_deadlines(void **state)
{
    (void)state;
    assert_harm("drift", 4, I3);
    assert_harm("send-time", 4, I3);
    assert_harm("continuity", 1, I3);
    assert_harm("continuity", 4, I3);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_harm("write-back", 3, I2);
    assert_harm("write-back", 5, I2);
    assert_harm("fence-floor", 1, I2);
    assert_harm("fence-floor", 3, I2);
    assert_harm("restarts", 1, I2);
}

static void test_losses(void **state)
{
    (void)state;
    assert_harm("loss", 1, I9);
    assert_harm("loss", 5, I9);
}

static void test_foreign_keys(void **state)
{
    (void)state;
    assert_harm("compare", 1, I4);
    assert_harm("compare", 5, I4);
    for (unsigned servers = 1; servers <= 5; servers += 2)
        assert_harm("expired", servers, I4);
}

static void test_orphans(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers += 2) {
        assert_harm("late-undo", servers, I5);
        assert_harm("lost-acquire", servers, I5);
    }
}

/* What a lost round leaves behind is in everybody's way. */
static void test_progress(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers += 2) {
        assert_harm("late-undo", servers, I6);
        assert_harm("lost-acquire", servers, I6);
    }
}

static void test_undone_is_undone(void **state)
{
    (void)state;
    assert_harm("fresh-token", 1, I8);
    assert_harm("fresh-token", 3, I8);
}

/* One server, where it may wait in line too; and several. */
static void test_witness(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers += 2)
        assert_harm("witness", servers, I11);
    work = WORK_ONCE;
    assert_harm("witness", 1, I11);
    work = WORK_LOCKS;
}

/* test_line.c has what seeds do not find. */
static void test_in_line(void **state)
{
    (void)state;
    assert_harm("join-once", 1, I1);
    assert_harm("join-once", 1, I8);
    assert_harm("answered", 1, I1);
    assert_harm("answered", 1, I3);
    assert_harm("grant-order", 1, I1);
}

/* test_once.c has what seeds do not find. */
static void test_once(void **state)
{
    (void)state;
    static const struct {
        const char *guard;
        enum invariant broken;
    } rows[] = {
        {"fresh-token", I12},
        {"unseen", I5},
        {"seen", O1},
        {"fingerprint", O5},
        {"begin-free", I1},
        {"begin-once", O1},
        {"halt", O1},
        {"doubts", O1},
        {"doubts", O3},
        {"no-end", O2},
        {"tell-own", O1},
        {"done-stays", O4},
        {"done-stays", O5},
        {"done-late", O4},
        {"unsure-late", O2},
        {"late", O4},
        {"failed-doubts", O2},
        {"forget", O1},
        {"unbegin-own", O1},
    };
    work = WORK_ONCE;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_harm(rows[i].guard, 1, rows[i].broken);
    work = WORK_LOCKS;
}

/* Many wait for one name, beside programs outside the line. */
static void test_crowd(void **state)
{
    (void)state;
    static const struct {
        const char *guard;
        enum invariant broken;
    } rows[] = {
        {"answered", I3},
        {"late-undo", I5},
        {"late-undo", I6},
        {"window", I16},
        {"far-window", I15},
        {"clock-back", I15},
        {"place", I17},
        {"gap", I18},
        {"gap-kept", I18},
        {"gap-ends", I18},
    };
    work = WORK_CROWD;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_harm(rows[i].guard, 1, rows[i].broken);
    /* With few other troubles hand-overs go on for long enough. */
    assert_harm_with("clock", "gap-comes", 1, I18);
    work = WORK_LOCKS;
}

/* Replicas take over, some without the latest locks. */
static void test_failover(void **state)
{
    (void)state;
    static const char *const guards[] = {"second-history", "age", "coordinated",
        "alive", "heard", "replicas", "same-history", "marker"};
    work = WORK_FAILOVER;
    for (unsigned i = 0; i < sizeof(guards) / sizeof(*guards); i++)
        assert_harm(guards[i], 1, I1);
    assert_harm("second-history", 3, I1);
    work = WORK_LOCKS;
}

/* Clients want replicas to have what they write. */
static void test_replicas(void **state)
{
    (void)state;
    static const struct {
        const char *guard;
        unsigned servers;
        enum invariant broken;
    } rows[] = {
        {"copies", 1, I19},
        {"copies", 3, I19},
        {"own-wait", 1, I19},
        {"old-deadline", 1, I19},
        {"old-deadline", 3, I19},
        {"void-token", 1, I8},
        {"held", 1, I5},
    };
    work = WORK_REPLICAS;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_harm(rows[i].guard, rows[i].servers, rows[i].broken);
    work = WORK_LOCKS;
}

/* A server that forgets its records: nothing helps against it, either. */
static void test_forgetful(void **state)
{
    (void)state;
    struct options options = OPTIONS_INIT;
    unsigned broken = 0;
    options.once = true;
    options.troubles = 1u << TROUBLE_WIPE | 1u << TROUBLE_CUT;
    options.checked = INVARIANT(O1);
    options.seed = 0;
    while (!broken && options.seed++ < MOST_SEEDS)
        broken = world_run(&options, NULL).broken;
    print_message(
        "a server that forgets: seed %llu\n", (unsigned long long)options.seed);
    assert_int_equal(broken, O1);
}

/* Not a guard: nothing helps against it, and we say so. */
static void test_skew(void **state)
{
    (void)state;
    static const unsigned counts[] = {1, 2, 3, 5};
    for (unsigned i = 0; i < 4; i++) {
        uint64_t seed = first_broken(counts[i], "skew", I1, MOST_SEEDS);
        print_message("%u servers, clocks stepped: seed %llu\n", counts[i],
            (unsigned long long)seed);
        assert_true(seed != 0);
    }
}

/* Handles of several names that are taken in any order wait for each other. */
static void test_several(void **state)
{
    (void)state;
    work = WORK_SEVERAL;
    assert_harm("name-order", 1, I6);
    assert_harm("name-order", 3, I6);
    work = WORK_LOCKS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_holders),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_foreign_keys),
        cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_undone_is_undone),
        cmocka_unit_test(test_witness),
        cmocka_unit_test(test_in_line),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_failover),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_forgetful),
        cmocka_unit_test(test_skew),
    };
    return cmocka_run_group_tests_name("harm", tests, NULL, NULL);
}
