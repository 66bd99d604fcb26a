/* SPDX-License-Identifier: MIT */
/* Each class has a remedy and one place in the order. */
#include "support/test.h"

#include <ctype.h>

#include "lock/remedy.h"

static void test_remedies(void **state)
{
    (void)state;
    assert_string_equal(remedy_of(FAULT_NONE), "");
    assert_string_equal(remedy_of(FAULT_SERVER), "");
    assert_string_equal(remedy_of(FAULT_TLS), ""); /* in its words */
    assert_string_equal(remedy_of(FAULT_CERTIFICATE), "");
    assert_string_equal(remedy_of(FAULT_CREDENTIALS), "");
    for (int f = 1; f < FAULT_CLASSES; f++) {
        const char *remedy = remedy_of((enum fault)f);
        assert_non_null(remedy);
        size_t len = strlen(remedy);
        if (f == FAULT_SERVER || f == FAULT_TLS || f == FAULT_CERTIFICATE ||
            f == FAULT_CREDENTIALS)
            continue;
        assert_in_range(len, 10, 200);
        assert_true(islower((unsigned char)remedy[0]));
        assert_true(remedy[len - 1] != '.');
    }
    /* The password was right, or no script would have run. */
    assert_null(strstr(remedy_of(FAULT_SCRIPT_DENIED), "password"));
    assert_contains(remedy_of(FAULT_SCRIPT_DENIED), "+time");
    /* A missing permission is no wrong password, and the other way round. */
    assert_contains(remedy_of(FAULT_NO_PERMISSION), "see docs/acl.md");
    assert_null(strstr(remedy_of(FAULT_NO_PERMISSION), "password"));
    assert_contains(remedy_of(FAULT_DENIED), "password");
    assert_null(strstr(remedy_of(FAULT_DENIED), "ACL"));
}

static void test_passes(void **state)
{
    (void)state;
    assert_true(fault_is_transient(FAULT_UNREACHABLE));
    assert_true(fault_is_transient(FAULT_TIMEOUT));
    assert_true(fault_is_transient(FAULT_RETRY));
    assert_true(fault_is_transient(FAULT_FULL));
    assert_true(fault_is_transient(FAULT_REFUSING));
    assert_true(fault_is_transient(FAULT_CLUSTER_DOWN));
    assert_true(fault_is_transient(FAULT_CREDENTIALS));
    assert_false(fault_is_transient(FAULT_NOT_PRIMARY));
    assert_false(fault_is_transient(FAULT_CLUSTER));
    assert_false(fault_is_transient(FAULT_IS_SENTINEL));
    assert_false(fault_is_transient(FAULT_DENIED));
    assert_false(fault_is_transient(FAULT_NO_PERMISSION));
    assert_false(fault_is_transient(FAULT_SCRIPT_DENIED));
    assert_false(fault_is_transient(FAULT_WRONG_TYPE));
    assert_false(fault_is_transient(FAULT_UNSUPPORTED));
    assert_false(fault_is_transient(FAULT_NOT_REDIS));
    assert_false(fault_is_transient(FAULT_NO_DATABASE));
    assert_false(fault_is_transient(FAULT_SLOTS));
}

static void test_wants_mending(void **state)
{
    (void)state;
    assert_false(fault_needs_repair(FAULT_NONE));
    assert_false(fault_needs_repair(FAULT_UNREACHABLE));
    assert_false(fault_needs_repair(FAULT_TIMEOUT));
    assert_false(fault_needs_repair(FAULT_RETRY));
    assert_false(fault_needs_repair(FAULT_RESTARTED));
    assert_true(fault_needs_repair(FAULT_FULL));
    assert_true(fault_needs_repair(FAULT_REFUSING));
    assert_true(fault_needs_repair(FAULT_CREDENTIALS));
    assert_true(fault_needs_repair(FAULT_DENIED));
    assert_true(fault_needs_repair(FAULT_NO_PERMISSION));
    assert_true(fault_needs_repair(FAULT_NO_INFO));
    assert_true(fault_needs_repair(FAULT_DUPLICATE));
    assert_true(fault_needs_repair(FAULT_TLS));
    assert_true(fault_needs_repair(FAULT_CERTIFICATE));
}

static void test_worse_is_an_order(void **state)
{
    (void)state;
    assert_int_equal(fault_worse(FAULT_RETRY, FAULT_DENIED), FAULT_DENIED);
    assert_int_equal(
        fault_worse(FAULT_UNREACHABLE, FAULT_WRONG_TYPE), FAULT_WRONG_TYPE);
    for (int i = 0; i < FAULT_CLASSES; i++) {
        enum fault a = (enum fault)i;
        assert_int_equal(fault_worse(a, FAULT_NONE), a);
        assert_int_equal(fault_worse(FAULT_NONE, a), a);
        for (int k = 0; k < FAULT_CLASSES; k++) {
            enum fault b = (enum fault)k;
            enum fault worse = fault_worse(a, b);
            assert_true(worse == a || worse == b);
            assert_int_equal(worse, fault_worse(b, a));
            /* What passes never hides what a person must mend. */
            if (a != FAULT_NONE && !fault_is_transient(a) &&
                fault_is_transient(b))
                assert_int_equal(worse, a);
        }
    }
}

static void test_elsewhere(void **state)
{
    (void)state;
    for (int f = 0; f < FAULT_CLASSES; f++)
        assert_int_equal(fault_wants_reconnect((enum fault)f),
            f == FAULT_NOT_PRIMARY || f == FAULT_DEMOTED || f == FAULT_CLUSTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_wants_mending),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_worse_is_an_order),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
