/* SPDX-License-Identifier: MIT */
/*
 * As test_harm.c, in worlds with Sentinels: what keeps two holders apart there.
 * tests/guards/table.py reads the lines that are printed here.
 */
#include "sim/harm.h"

/* Sentinels say which server is the primary, each when it has learnt it. */
static void test_sentinels(void **state)
{
    (void)state;
    static const char *const guards[] = {"confirm-grants", "confirm-extends",
        "confirm-messages", "named", "moved", "all-sentinels", "one-sentinel",
        "first-answer", "age"};
    work = WORK_SENTINELS;
    for (unsigned i = 0; i < sizeof(guards) / sizeof(*guards); i++)
        assert_harm(guards[i], 1, I1);
    work = WORK_LOCKS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentinels),
    };
    return cmocka_run_group_tests_name("harm-sentinels", tests, NULL, NULL);
}
