/* SPDX-License-Identifier: MIT */
/* Names every function of nxlock.h, so that a program that uses any of them
 * links with the shared library; names.h is made from the header. */
#include "support/test.h"

#include <nxlock.h>

typedef void (*function)(void);

#define NAME(name) {#name, (function)name},
static const struct {
    const char *name;
    function address;
} names[] = {
#include "names.h"
};

static void test_every_name_is_there(void **state)
{
    (void)state;
    size_t count = sizeof(names) / sizeof(names[0]);

    for (size_t i = 0; i < count; i++)
        if (!names[i].address)
            fail_msg("%s has no address", names[i].name);
    assert_between(count, 20, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_is_there)};
    return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
