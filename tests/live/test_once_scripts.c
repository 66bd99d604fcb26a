/* SPDX-License-Identifier: MIT */
/* The scripts of work that must be done once, on a real server. */
#include "live/once_table.h"

static void the_table(void **state)
{
    struct cell c;
    const char *why;
    unsigned tried = table_differs(&c, &why);

    if (why)
        fail_msg("%s: not %s (%s)", cell_name(&c), why, once_words);
    assert_int_equal(tried, 2120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(the_table),
    };
    return cmocka_run_group_tests_name(
        "once_scripts", tests, live_unix, live_stop);
}
