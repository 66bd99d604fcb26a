/* SPDX-License-Identifier: MIT */
/* Each result, duration, renewal and loss is counted once, where it belongs. */
#include "support/test.h"

#include "lock/stats.h"
#include "base/deadline.h"

/* Every counter of a histogram, and the bucket that has the only duration. */
static size_t only_bucket(const nxl_histogram *h, uint64_t ns)
{
    size_t found = NXL_HISTOGRAM_BUCKETS;
    assert_int_equal(h->count, 1);
    assert_int_equal(h->sum_ns, ns);
    for (size_t i = 0; i < NXL_HISTOGRAM_BUCKETS; i++) {
        assert_between(h->buckets[i], 0, 1);
        if (h->buckets[i] && found < NXL_HISTOGRAM_BUCKETS)
            fail_msg("two buckets, %zu and %zu", found, i);
        if (h->buckets[i])
            found = i;
    }
    return found;
}

static void each_duration_has_its_bucket(void **state)
{
    static const struct {
        uint64_t ns;
        size_t bucket;
    } table[] = {
        {0, 0},
        {1, 0},
        {NS_PER_MS, 0},
        {NS_PER_MS + 1, 1},
        {2 * NS_PER_MS, 1},
        {3 * NS_PER_MS, 2},
        {5 * NS_PER_MS, 2},
        {10 * NS_PER_MS, 3},
        {NS_PER_S, 9},
        {60 * NS_PER_S, 15},
        {3600 * NS_PER_S, 20},
        {20000 * NS_PER_S, 22},
        {20000 * NS_PER_S + 1, 23},
        {UINT64_MAX, 23},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        static struct nxl_client client;
        memset(&client.stats, 0, sizeof(client.stats));
        stats_held(&client, table[i].ns);
        assert_int_equal(
            only_bucket(&client.stats.hold, table[i].ns), table[i].bucket);
        assert_int_equal(client.stats.wait.count, 0);
        stats_acquired(&client, NXL_BUSY, false, table[i].ns);
        assert_int_equal(
            only_bucket(&client.stats.wait, table[i].ns), table[i].bucket);
    }
}

/* 1, 2 and 5 times a power of ten. */
static void the_limits(void **state)
{
    static const uint64_t steps[] = {1, 2, 5};
    uint64_t power = 1;
    (void)state;
    for (size_t i = 0; i + 1 < NXL_HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(nxl_histogram_limit_ms(i), steps[i % 3] * power);
        power *= i % 3 == 2 ? 10 : 1;
    }
    assert_int_equal(nxl_histogram_limit_ms(NXL_HISTOGRAM_BUCKETS - 1), 0);
    assert_int_equal(nxl_histogram_limit_ms(NXL_HISTOGRAM_BUCKETS), 0);
    assert_int_equal(nxl_histogram_limit_ms(SIZE_MAX), 0);
}

#define AT(member) offsetof(nxl_stats, member)

static uint64_t counter(const nxl_stats *stats, size_t at)
{
    return *(const uint64_t *)(const void *)((const char *)stats + at);
}

static void each_result_has_its_counter(void **state)
{
    static const size_t counters[] = {AT(grants), AT(busy), AT(unknown),
        AT(unreachable), AT(refused), AT(cancelled), AT(recorded)};
    static const struct {
        int result;
        size_t at;
    } table[] = {
        {NXL_OK, AT(grants)},
        {NXL_BUSY, AT(busy)},
        {NXL_UNKNOWN, AT(unknown)},
        {NXL_E_UNREACHABLE, AT(unreachable)},
        {NXL_CANCELLED, AT(cancelled)},
        {NXL_DONE, AT(recorded)},
        {NXL_DOUBT, AT(recorded)},
        {NXL_MISMATCH, AT(recorded)},
        {NXL_E_NOMEM, AT(refused)},
        {NXL_E_SYSTEM, AT(refused)},
        {NXL_E_URL, AT(refused)},
        {NXL_E_DENIED, AT(refused)},
        {NXL_E_REFUSED, AT(refused)},
        {NXL_E_WRONG_TYPE, AT(refused)},
        {NXL_E_NOT_REDIS, AT(refused)},
        {NXL_E_UNSUPPORTED, AT(refused)},
        {NXL_E_SERVER, AT(refused)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        static struct nxl_client client;
        uint64_t sum = 0;
        memset(&client.stats, 0, sizeof(client.stats));
        stats_acquired(&client, table[i].result, i % 2, 0);
        for (size_t k = 0; k < sizeof(counters) / sizeof(counters[0]); k++)
            sum += counter(&client.stats, counters[k]);
        assert_int_equal(sum, 1);
        assert_int_equal(counter(&client.stats, table[i].at), 1);
        assert_int_equal(client.stats.waits, i % 2);
    }
}

static void each_loss_has_its_counter(void **state)
{
    static const struct {
        enum nxl_loss loss;
        size_t at;
    } table[] = {
        {NXL_LOSS_EXPIRED, AT(losses_expired)},
        {NXL_LOSS_REMOVED, AT(losses_removed)},
        {NXL_LOSS_TAKEN, AT(losses_taken)},
        {NXL_LOSS_UNREACHABLE, AT(losses_unreachable)},
    };
    static struct nxl_client client;
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (size_t n = 0; n <= i; n++)
            stats_lost(&client, table[i].loss);
        for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++)
            assert_int_equal(
                counter(&client.stats, table[k].at), k <= i ? k + 1 : 0);
    }
    assert_int_equal(client.stats.losses, 1 + 2 + 3 + 4);
}

static void the_least_slack_is_kept(void **state)
{
    static const uint64_t left[] = {400, 500, 0, 300};
    static const uint64_t least[] = {400, 400, 0, 0};
    static struct nxl_client client;
    (void)state;
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        stats_renewed(&client, left[i]);
        assert_int_equal(client.stats.least_slack_ms, least[i]);
        assert_int_equal(client.stats.renewals, i + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_duration_has_its_bucket),
        cmocka_unit_test(the_limits),
        cmocka_unit_test(each_result_has_its_counter),
        cmocka_unit_test(each_loss_has_its_counter),
        cmocka_unit_test(the_least_slack_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
