/* SPDX-License-Identifier: MIT */
/* What wait_replicas costs: one lock alone and many in flight, with and without
 * it, in turn, on a primary with replicas; and how many WAITs that took. Exit
 * status: 0 measured, whether or not the goals were met; 1 not; 2 usage. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

enum { REPLICAS_MAX = 5, KINDS = 2, MODES = 2 };

static const char help[] =
    "usage: nxlock-bench-replicas [options]\n"
    "Measures locks with wait_replicas against locks without it. It starts\n"
    "private servers and stops them at the end.\n"
    "\n"
    "  --rounds N       of each measurement (15)\n"
    "  --seconds S      how long one takes (0.5)\n"
    "  --replicas N     how many there are (2)\n"
    "  --wait N         wait_replicas (1)\n"
    "  --width N        locks in flight (64)\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n";

static const struct kind {
    const char *name;
    bench_runner *run;
    double goal; /* of the ratio, 0: none */
} kinds[KINDS] = {
    {"one lock, alone", subject_cycle, 1.7},
    {"in flight", subject_loop, 1.1},
};

static struct {
    int rounds, replicas, wait, width;
    double seconds;
    const char *program;
    struct server server[REPLICAS_MAX + 1]; /* the first is the primary */
    int servers;
    char url[MODES][600]; /* without, with */
    double cycle_us[KINDS][MODES][BENCH_MAX_ROUNDS];
    double client_us[KINDS][MODES][BENCH_MAX_ROUNDS];
    double both_us[KINDS][MODES][BENCH_MAX_ROUNDS];
    double waits[KINDS][BENCH_MAX_ROUNDS]; /* for each cycle */
} run = {.rounds = 15,
    .replicas = 2,
    .wait = 1,
    .width = 64,
    .seconds = 0.5,
    .program = "redis-server"};

static int number(const char *text, double low, double high, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end == text || *end || !(*out >= low && *out <= high) ? -1 : 0;
}

static int set(int option, const char *value)
{
    double n = 0;
    int rc = 0;
    switch (option) {
    case 'r':
        rc = number(value, 1, BENCH_MAX_ROUNDS, &n);
        run.rounds = (int)n;
        break;
    case 's':
        rc = number(value, 0.05, 60, &run.seconds);
        break;
    case 'R':
        rc = number(value, 1, REPLICAS_MAX, &n);
        run.replicas = (int)n;
        break;
    case 'w':
        rc = number(value, 1, REPLICAS_MAX, &n);
        run.wait = (int)n;
        break;
    case 'W':
        rc = number(value, 1, 1000, &n);
        run.width = (int)n;
        break;
    case 'S':
        run.program = value;
        break;
    case 'h':
        fputs(help, stdout);
        exit(0);
    default:
        rc = -1;
    }
    return rc;
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"replicas", required_argument, NULL, 'R'},
        {"wait", required_argument, NULL, 'w'},
        {"width", required_argument, NULL, 'W'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (set(option, optarg) != 0) {
            fputs(help, stderr);
            return -1;
        }
    return optind == argc ? 0 : -1;
}

/* ---------------------------------------------------------------- servers */

/* An integer, or a number behind `field` in the text; -1. */
static long long ask(
    const struct server *server, const char *field, const char *command)
{
    redisContext *redis = redisConnectUnix(server->unix_path);
    redisReply *reply =
        redis && !redis->err ? redisCommand(redis, command) : NULL;
    long long result = -1;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        result = reply->integer;
    const char *at =
        reply && field && reply->str ? strstr(reply->str, field) : NULL;
    if (at)
        result = strtoll(at + strlen(field), NULL, 10);
    if (reply)
        freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return result;
}

static long long waits_made(void)
{
    long long calls =
        ask(&run.server[0], "\ncmdstat_wait:calls=", "INFO commandstats");
    return calls < 0 ? 0 : calls;
}

static int start(void)
{
    char command[64];
    for (; run.servers <= run.replicas; run.servers++)
        if (server_start(&run.server[run.servers], run.program, NULL) != 0)
            return -1;
    const struct server *primary = &run.server[0];
    (void)ask(primary, NULL, "CONFIG SET repl-diskless-sync-delay 0");
    snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %d", primary->port);
    for (int i = 1; i < run.servers; i++)
        (void)ask(&run.server[i], NULL, command);
    for (int tries = 0; tries < 300; tries++) {
        if (ask(primary, NULL, "SET warm x") == -1 &&
            ask(primary, "connected_slaves:", "INFO replication") ==
                run.replicas) {
            snprintf(run.url[0], sizeof(run.url[0]), "%s", primary->unix_url);
            snprintf(run.url[1], sizeof(run.url[1]), "%s?wait_replicas=%d",
                primary->unix_url, run.wait);
            return 0;
        }
        usleep(100000);
    }
    fputs("the replicas do not follow\n", stderr);
    return -1;
}

/* ---------------------------------------------------------------- measuring */

static int measure(int kind, int mode, int round)
{
    struct sample sample = {.ok = false};
    struct task task = {.unix_path = run.server[0].unix_path,
        .url = run.url[mode],
        .width = kind ? run.width : 1,
        .server = run.server[0].pid,
        .window_ns = (uint64_t)(run.seconds * 1e9)};
    long long waits = waits_made();
    if (kinds[kind].run(&task, &sample) != 0 || !(sample.rate > 0)) {
        fprintf(stderr, "%s: %s\n", kinds[kind].name, sample.error);
        return -1;
    }
    run.cycle_us[kind][mode][round] = 1e6 / sample.rate;
    run.client_us[kind][mode][round] = sample.cpu_us;
    run.both_us[kind][mode][round] = sample.both_us;
    waits = waits_made() - waits - (kind ? 0 : BENCH_WARM);
    if (mode)
        run.waits[kind][round] = (double)waits / (sample.rate * run.seconds);
    return 0;
}

static double median_ratio(double values[MODES][BENCH_MAX_ROUNDS])
{
    double ratio[BENCH_MAX_ROUNDS];
    for (int i = 0; i < run.rounds; i++)
        ratio[i] = values[1][i] / values[0][i];
    return median_of(ratio, run.rounds);
}

static void print_row(int kind, const char *what,
    double values[MODES][BENCH_MAX_ROUNDS], double goal)
{
    double low = 1e9, high = 0;
    for (int i = 0; i < run.rounds; i++) {
        double ratio = values[1][i] / values[0][i];
        low = ratio < low ? ratio : low;
        high = ratio > high ? ratio : high;
    }
    double ratio = median_ratio(values);
    printf("| %s, %s | %.1f | %.1f | %.2f [%.2f-%.2f] | ", kinds[kind].name,
        what, median_of(values[0], run.rounds),
        median_of(values[1], run.rounds), ratio, low, high);
    if (goal > 0)
        printf("%.2f, %s |\n", goal, ratio <= goal ? "met" : "not met");
    else
        printf("|\n");
}

static void print(void)
{
    double load[1] = {0};
    (void)getloadavg(load, 1);
    printf("%s %s, %d replicas, wait_replicas=%d, %d rounds of %.2f s, load "
           "%.1f\n\n| us a cycle, medians | plain | waiting | ratio | goal "
           "|\n|---|---:|---:|---:|---|\n",
        run.program, run.server[0].version, run.replicas, run.wait, run.rounds,
        run.seconds, load[0]);
    for (int kind = 0; kind < KINDS; kind++) {
        print_row(kind, "time", run.cycle_us[kind], kinds[kind].goal);
        print_row(kind, "client CPU", run.client_us[kind], 0);
        print_row(kind, "CPU of client and primary", run.both_us[kind], 0);
    }
    printf(
        "\nin flight: %d. WAITs for each cycle: alone %.3f, in flight %.3f\n",
        run.width, median_of(run.waits[0], run.rounds),
        median_of(run.waits[1], run.rounds));
}

int main(int argc, char **argv)
{
    if (parse(argc, argv) != 0)
        return 2;
    int rc = start();
    for (int round = 0; rc == 0 && round < run.rounds; round++)
        for (int i = 0; rc == 0 && i < KINDS * MODES; i++)
            rc = measure(i / MODES, (i + round) % MODES, round);
    if (rc == 0)
        print();
    for (int i = 0; i < run.servers; i++)
        server_stop(&run.server[i]);
    return rc == 0 ? 0 : 1;
}
