/* SPDX-License-Identifier: MIT */
/* Gathers the metrics of a run from its events and the library's counters. */
#include "cli/metrics.h"

#include "cli/event.h"
#include "cli/metrics_file.h"
#include "cli/report.h"

static struct {
    const struct args *args;
    nxl_stats stats;
    struct event end;
    int64_t downs;
    bool ran; /* CMD has ended */
} run;

void metrics_note(nxl_client *client)
{
    if (run.args && client)
        (void)nxl_client_stats(client, &run.stats, sizeof(run.stats));
}

static int64_t unix_ms(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

static void add_losses(int64_t *losses)
{
    const nxl_stats *stats = &run.stats;

    losses[LOST_EXPIRED] += (int64_t)stats->losses_expired;
    losses[LOST_REMOVED] += (int64_t)stats->losses_removed;
    losses[LOST_TAKEN] += (int64_t)stats->losses_taken;
    losses[LOST_UNREACHABLE] += (int64_t)stats->losses_unreachable;
    losses[LOST_LATE] +=
        run.end.result == RESULT_LOST && stats->losses == 0 ? 1 : 0;
}

static bool is_skip(const struct event *end)
{
    return end->result == RESULT_BUSY || end->result == RESULT_NOT_DUE ||
           end->result == RESULT_DONE_BEFORE || end->skip != SKIP_NONE;
}

static void add_run(struct metrics_row *row)
{
    int64_t *value = row->value;

    if (run.ran && run.end.result == RESULT_DONE)
        value[METRIC_SUCCESS] = unix_ms(&run.end.time);
    if (is_skip(&run.end))
        value[METRIC_SKIP] = unix_ms(&run.end.time);
    if (run.ran)
        value[METRIC_DURATION] = run.end.ran_ms;
    if (run.stats.renewals > 0)
        value[METRIC_SLACK] = (int64_t)run.stats.least_slack_ms;
    value[METRIC_RUNS + run.end.result]++;
    add_losses(&value[METRIC_LOSSES]);
    value[METRIC_ATTEMPTS] += (int64_t)run.stats.attempts;
    value[METRIC_WAITS] += (int64_t)run.stats.waits;
    value[METRIC_WAIT_TIME] += run.end.waited_ms;
    value[METRIC_HOLD_TIME] += run.end.held_ms;
    value[METRIC_RENEWALS] += (int64_t)run.stats.renewals;
    value[METRIC_FAILURES] += (int64_t)run.stats.renewal_failures;
    value[METRIC_DOWN] += run.downs;
}

static void count_event(const struct event *event)
{
    char why[512];

    run.downs += event->kind == EVENT_SERVER_DOWN;
    run.ran |= event->kind == EVENT_COMMAND_ENDED;
    if (event->kind != EVENT_ENDED)
        return;
    run.end = *event;
    if (!metrics_update(
            run.args->metrics, run.args->name, add_run, why, sizeof(why)))
        say("warning: cannot write metrics to '%s': %s", run.args->metrics,
            why);
}

void metrics_begin(const struct args *args)
{
    if (!args->metrics)
        return;
    run.args = args;
    event_add_sink(count_event);
}
