/* SPDX-License-Identifier: MIT */
/* Counts what a client does. */
#include "lock/stats.h"

#include "base/deadline.h"

/* ------------------------------------------------------------- histograms */

/* Of every bucket but the last one, which has no limit. */
static const uint32_t limits_ms[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000,
    2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000,
    5000000, 10000000, 20000000};

enum { LIMITS = sizeof(limits_ms) / sizeof(limits_ms[0]) };

_Static_assert(
    LIMITS + 1 == NXL_HISTOGRAM_BUCKETS, "one limit for each bucket");

uint64_t stats_limit_ms(size_t bucket)
{
    return bucket < LIMITS ? limits_ms[bucket] : 0;
}

/* What is not contended is in the first bucket, after one comparison. */
static void add_duration(struct nxl_histogram *histogram, uint64_t ns)
{
    size_t i = 0;
    while (i < LIMITS && ns > ms_to_ns(limits_ms[i]))
        i++;
    histogram->count++;
    histogram->sum_ns += ns;
    histogram->buckets[i]++;
}

/* --------------------------------------------------------------- counting */

static uint64_t *counter_of_result(struct nxl_stats *stats, int result)
{
    switch (result) {
    case NXL_OK:
        return &stats->grants;
    case NXL_BUSY:
        return &stats->busy;
    case NXL_UNKNOWN:
        return &stats->unknown;
    case NXL_E_UNREACHABLE:
        return &stats->unreachable;
    case NXL_CANCELLED:
        return &stats->cancelled;
    case NXL_DONE:
    case NXL_DOUBT:
    case NXL_MISMATCH:
        return &stats->recorded;
    default:
        return &stats->refused;
    }
}

void stats_acquired(
    struct nxl_client *client, int result, bool waited, uint64_t ns)
{
    struct nxl_stats *stats = &client->stats;
    ++*counter_of_result(stats, result);
    stats->waits += waited;
    add_duration(&stats->wait, ns);
}

void stats_held(struct nxl_client *client, uint64_t ns)
{
    add_duration(&client->stats.hold, ns);
}

void stats_renewed(struct nxl_client *client, uint64_t left_ms)
{
    struct nxl_stats *stats = &client->stats;
    if (!stats->renewals || left_ms < stats->least_slack_ms)
        stats->least_slack_ms = left_ms;
    stats->renewals++;
}

void stats_lost(struct nxl_client *client, enum nxl_loss loss)
{
    struct nxl_stats *stats = &client->stats;
    stats->losses++;
    switch (loss) {
    case NXL_LOSS_EXPIRED:
        stats->losses_expired++;
        break;
    case NXL_LOSS_REMOVED:
        stats->losses_removed++;
        break;
    case NXL_LOSS_TAKEN:
        stats->losses_taken++;
        break;
    case NXL_LOSS_UNREACHABLE:
        stats->losses_unreachable++;
        break;
    case NXL_LOSS_NONE:
        break;
    }
}
