/* SPDX-License-Identifier: MIT */
/*
 * As test_harm.c, where several hold a lock: what keeps the permits that they
 * have within the smallest limit, the line in order, and nothing for nobody.
 * tests/guards/table.py reads the lines that are printed here.
 */
#include "sim/harm.h"

struct row {
    const char *guard;
    enum invariant broken;
};

static void find_all(unsigned servers, const struct row *rows, size_t count)
{
    work = WORK_PERMITS;
    for (size_t i = 0; i < count; i++)
        assert_harm(rows[i].guard, servers, rows[i].broken);
    work = WORK_LOCKS;
}

/* What the scripts do at the server. */
static void test_scripts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"smallest", I1},
        {"head", I1},
        {"lease-over", I11},
        {"end-put", I1},
        {"end-left", I1},
        {"end-left", I5},
        {"counts-on", I1},
        {"held-first", I11},
        {"held-first", I6},
        {"leaves-line", I5},
        {"take-behind", I15},
        {"after-gap", I15},
        {"pause", I18},
        {"never-shorten", I1},
    };
    find_all(1, rows, sizeof(rows) / sizeof(rows[0]));
}

/* What a client does. */
static void test_clients(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"send-time", I1},
        {"send-time", I3},
        {"drift", I1},
        {"answered", I1},
        {"answered", I3},
        {"fresh-token", I8},
        {"join-once", I8},
        {"join-once", I12},
        {"lost-acquire", I5},
        {"lost-acquire", I6},
        {"late-undo", I5},
        {"late-undo", I6},
        {"as-joined", I5},
        {"as-joined", I8},
        {"witness", I11},
        {"restarts", I1},
    };
    find_all(1, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Shared and exclusive locks over several servers. */
static void test_servers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"end-put", I1},
        {"end-left", I5},
        {"restarts", I1},
        {"drift", I1},
        {"expired", I4},
        {"fresh-token", I8},
        {"lost-acquire", I5},
    };
    find_all(3, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Replicas take over, some without the latest locks. */
static void test_failover(void **state)
{
    (void)state;
    static const char *const guards[] = {
        "second-history", "age", "coordinated", "alive", "replicas", "marker"};
    work = WORK_PERMITS_FAILOVER;
    for (unsigned i = 0; i < sizeof(guards) / sizeof(*guards); i++)
        assert_harm(guards[i], 1, I1);
    assert_harm("second-history", 3, I1);
    work = WORK_LOCKS;
}

/* ... which have to have what clients write. */
static void test_replicas(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"copies", I19},
        {"own-wait", I19},
        {"old-deadline", I19},
        {"void-token", I8},
        {"held", I5},
    };
    work = WORK_PERMITS_REPLICAS;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_harm(rows[i].guard, 1, rows[i].broken);
    assert_harm("copies", 3, I19);
    assert_harm("old-deadline", 3, I19);
    work = WORK_LOCKS;
}

/* Sentinels decide that. */
static void test_sentinels(void **state)
{
    (void)state;
    static const char *const guards[] = {
        "confirm-grants", "confirm-extends", "named", "one-sentinel", "age"};
    work = WORK_PERMITS_SENTINELS;
    for (unsigned i = 0; i < sizeof(guards) / sizeof(*guards); i++)
        assert_harm(guards[i], 1, I1);
    work = WORK_LOCKS;
}

/* Who wants the lock alone, and waits without a line. */
static void test_readers(void **state)
{
    (void)state;
    work = WORK_READERS;
    for (unsigned servers = 1; servers <= 5; servers += 2) {
        assert_harm("hold-back", servers, I21);
        assert_harm("mark-stays", servers, I21);
        assert_harm("mark-stays", servers, I15);
    }
    work = WORK_LOCKS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_failover),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_sentinels),
    };
    return cmocka_run_group_tests_name("harm-permits", tests, NULL, NULL);
}
