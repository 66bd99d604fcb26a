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
        {"debts", I5},
        {"debts", I6},
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
        {"debts", I5},
    };
    find_all(3, rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_servers),
    };
    return cmocka_run_group_tests_name("harm-permits", tests, NULL, NULL);
}
