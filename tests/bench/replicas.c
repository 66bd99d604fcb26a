/* SPDX-License-Identifier: MIT */
/* What wait_replicas costs: one lock alone and many in flight, with and without
 * it, in turn, on a primary with replicas; and how many WAITs that took. */
#include "cases.h"

#include <stdio.h>

enum { REPLICAS = 2, KINDS = 2, MODES = 2 };
#define WINDOW_NS 100000000

static const struct {
    const char *words;
    bench_runner *run;
    int width;
    double goal; /* of the time */
} kinds[KINDS] = {
    {"one lock, alone", subject_cycle, 1, 1.7},
    {"64 in flight", subject_loop, 64, 1.1},
};

/* Of a cycle, without wait_replicas and with it. */
static double cycle_us[KINDS][MODES][BENCH_MAX_ROUNDS];
static double client_us[KINDS][MODES][BENCH_MAX_ROUNDS];
static double both_us[KINDS][MODES][BENCH_MAX_ROUNDS];
static double waits[KINDS][BENCH_MAX_ROUNDS];

static int measure(int kind, int mode, int round)
{
    struct redis *primary = &cases_run.server;
    struct sample sample = {.ok = false};
    char url[600];
    struct task task = {.unix_path = primary->path,
        .url = url,
        .width = kinds[kind].width,
        .server = primary->pid,
        .window_ns = WINDOW_NS};
    long before = redis_calls(primary, "wait");

    snprintf(url, sizeof(url), "%s%s", primary->unix_url,
        mode ? "?timeout_ms=15000&wait_replicas=1&wait_ms=5000&"
               "guard_failover=off"
             : "");
    if (kinds[kind].run(&task, &sample) != 0 || !(sample.rate > 0))
        return case_fail("%s: %s", kinds[kind].words, sample.error);
    cycle_us[kind][mode][round] = 1e6 / sample.rate;
    client_us[kind][mode][round] = sample.cpu_us;
    both_us[kind][mode][round] = sample.both_us;
    if (mode)
        waits[kind][round] = (double)(redis_calls(primary, "wait") - before -
                                      (kind ? 0 : BENCH_WARM)) *
                             1e9 / (sample.rate * WINDOW_NS);
    return 0;
}

static void print_kind(int kind)
{
    const struct {
        const char *words;
        double (*us)[BENCH_MAX_ROUNDS];
        double goal;
    } rows[] = {
        {"time", cycle_us[kind], kinds[kind].goal},
        {"client CPU", client_us[kind], 0},
        {"CPU of client and primary", both_us[kind], 0},
    };
    char what[120];

    for (int i = 0; i < 3; i++) {
        snprintf(what, sizeof(what), "%s: %s, waiting to plain",
            kinds[kind].words, rows[i].words);
        case_ratio(
            what, rows[i].us[1], rows[i].us[0], cases_run.rounds, rows[i].goal);
    }
    snprintf(what, sizeof(what), "%s: WAITs for a cycle", kinds[kind].words);
    case_row(what, "", waits[kind], cases_run.rounds, 0);
}

int case_replicas(void)
{
    struct redis replicas[REPLICAS] = {{0}};
    int rc = 0;

    for (int i = 0; rc == 0 && i < REPLICAS; i++) {
        rc = redis_start(&replicas[i], NULL);
        if (rc == 0)
            redis_copy(&replicas[i], &cases_run.server);
    }
    for (int round = 0; rc == 0 && round < cases_run.rounds; round++)
        for (int i = 0; rc == 0 && i < KINDS * MODES; i++)
            rc = measure(i / MODES, (i + round) % MODES, round);
    for (int kind = 0; rc == 0 && kind < KINDS; kind++)
        print_kind(kind);
    for (int i = 0; i < REPLICAS; i++)
        redis_stop(&replicas[i]);
    return rc;
}
