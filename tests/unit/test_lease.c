/* SPDX-License-Identifier: MIT */
/* A deadline is before the server's end of the lease, and never wraps. */
#include "support/test.h"

#include "base/deadline.h"
#include "core/lease.h"

#define PERCENT 10000 /* ppm */

static void drift_is_share_and_rounding(void **state)
{
    (void)state;
    assert_int_equal(lease_drift_ns(0, PERCENT), 2 * NS_PER_MS);
    assert_int_equal(lease_drift_ns(1000, PERCENT), 12 * NS_PER_MS);
    assert_int_equal(lease_drift_ns(1000, 0), 2 * NS_PER_MS);
    assert_int_equal(lease_drift_ns(1, 1), 2 * NS_PER_MS + 1);
    assert_int_equal(lease_drift_ns(30000, 20000), 602 * NS_PER_MS);
}

static void drift_does_not_wrap(void **state)
{
    (void)state;
    uint64_t most = (uint64_t)UINT32_MAX * UINT32_MAX;
    assert_true(lease_drift_ns(UINT32_MAX, UINT32_MAX) > most);
}

static void deadline_counts_from_the_send(void **state)
{
    (void)state;
    uint64_t sent = 77 * NS_PER_S;
    assert_int_equal(
        lease_deadline(sent, 1000, PERCENT), sent + 988 * NS_PER_MS);
    assert_int_equal(lease_deadline(sent, 1000, 0), sent + 998 * NS_PER_MS);
}

static void deadline_is_zero_when_nothing_remains(void **state)
{
    (void)state;
    uint64_t sent = 77 * NS_PER_S;
    assert_int_equal(lease_deadline(sent, 0, 0), 0);
    assert_int_equal(lease_deadline(sent, 2, 0), 0);
    assert_int_equal(lease_deadline(sent, 3, 0), sent + NS_PER_MS);
    assert_int_equal(lease_deadline(sent, 1000, 998000), 0);
    assert_int_equal(lease_deadline(sent, 1000, 997999), sent + 1000);
    assert_int_equal(lease_deadline(sent, UINT32_MAX, UINT32_MAX), 0);
}

static void deadline_saturates(void **state)
{
    (void)state;
    assert_true(lease_deadline(NEVER, 1000, PERCENT) == NEVER);
    assert_true(lease_deadline(NEVER - 1, 1000, PERCENT) == NEVER);
    uint64_t lease = 988 * NS_PER_MS;
    assert_true(lease_deadline(NEVER - lease, 1000, PERCENT) == NEVER);
    assert_true(lease_deadline(NEVER - lease - 1, 1000, PERCENT) == NEVER - 1);
}

static void usable_leaves_the_least(void **state)
{
    (void)state;
    assert_false(lease_usable(0, 0));
    assert_false(lease_usable(11, 0));
    assert_true(lease_usable(12, 0));
    assert_false(lease_usable(12, PERCENT));
    assert_true(lease_usable(13, PERCENT));
    assert_true(lease_usable(UINT32_MAX, PERCENT));
    assert_false(lease_usable(UINT32_MAX, 1000000));
    assert_false(lease_usable(UINT32_MAX, UINT32_MAX));
}

static void least_ttl_is_the_border(void **state)
{
    (void)state;
    static const uint32_t drifts[] = {
        0, 1, 100, PERCENT, 333333, 500000, 999000, 999998, 999999};
    for (size_t i = 0; i < sizeof(drifts) / sizeof(drifts[0]); i++) {
        uint32_t least = lease_least_ttl_ms(drifts[i]);
        assert_true(lease_usable(least, drifts[i]));
        assert_false(lease_usable(least - 1, drifts[i]));
    }
}

static void least_ttl_of_an_impossible_drift(void **state)
{
    (void)state;
    assert_int_equal(lease_least_ttl_ms(1000000), UINT32_MAX);
    assert_int_equal(lease_least_ttl_ms(UINT32_MAX), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_is_share_and_rounding),
        cmocka_unit_test(drift_does_not_wrap),
        cmocka_unit_test(deadline_counts_from_the_send),
        cmocka_unit_test(deadline_is_zero_when_nothing_remains),
        cmocka_unit_test(deadline_saturates),
        cmocka_unit_test(usable_leaves_the_least),
        cmocka_unit_test(least_ttl_is_the_border),
        cmocka_unit_test(least_ttl_of_an_impossible_drift),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
