/* SPDX-License-Identifier: MIT */
/* The command line of the benchmark. Exit status: 0 everything was measured
 * (whether or not the goals were met), 1 something was not, 2 usage. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BENCH_TLS
#include "support/redis_tls.h"
#endif

static const char help[] =
    "usage: nxlock-bench [options]\n"
    "Measures nxlock against hiredis doing the same by hand, in rounds,\n"
    "and prints one table and the goals. A cycle is acquire and release.\n"
    "Client and server are on one cpu, with threads also where the kernel\n"
    "puts them, over TLS also on a cpu each.\n"
    "\n"
    "  --rounds N       rounds, each variant once in each (15)\n"
    "  --seconds S      the window of one measurement (0.3)\n"
    "  --only TEXT      only variants with TEXT in the name, and their bases\n"
    "  --over TRANSPORT tcp, unix or tls only, and the bases of those\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n"
    "\n"
    "A private server is started on a unix socket, a loopback port and\n"
    "another one for TLS, and stopped at the end. One that was built without\n"
    "TLS is measured with --over tcp and --over unix.\n";

struct settings {
    struct plan plan;
    bool help;
};

static int set(struct settings *settings, int option, const char *value)
{
    double n;

    switch (option) {
    case 'r':
        if (!bench_number(value, 1, BENCH_MAX_ROUNDS, &n))
            return -1;
        settings->plan.rounds = (int)n;
        return 0;
    case 's':
        if (!bench_number(value, 0.01, 600, &n))
            return -1;
        settings->plan.window_ns = (uint64_t)(n * 1e9);
        return 0;
    case 'o':
        settings->plan.only = value;
        return 0;
    case 'O':
        for (int i = 0; i < OVERS; i++) {
            if (strcmp(value, over_names[i]) == 0)
                settings->plan.only_over = i;
        }
        return settings->plan.only_over < 0 ? -1 : 0;
    case 'S':
        return setenv("NXLOCK_REDIS_SERVER", value, 1);
    case 'h':
        settings->help = true;
        return 0;
    default:
        return -1;
    }
}

static int parse(struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},
        {"over", required_argument, NULL, 'O'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    int which = 0;

    while ((option = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (option == '?')
            return -1;
        if (set(settings, option, optarg)) {
            fprintf(stderr, "nxlock-bench: --%s does not take '%s'\n",
                options[which].name, optarg);
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nxlock-bench: '%s' is one argument too many\n",
            argv[optind]);
        return -1;
    }
    return 0;
}

/* The cpu to share: the last one we may use, since the first ones serve the
 * machine's interrupts. Another one for the server, if each has its own: the
 * last but one. */
static int choose_cpu(struct plan *plan)
{
    CPU_ZERO(&plan->one);
    CPU_ZERO(&plan->other);
    if (sched_getaffinity(0, sizeof(plan->all), &plan->all)) {
        perror("nxlock-bench: sched_getaffinity");
        return -1;
    }
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (!CPU_ISSET(cpu, &plan->all))
            continue;
        if (CPU_COUNT(&plan->one) == 0) {
            CPU_SET(cpu, &plan->one);
        } else {
            CPU_SET(cpu, &plan->other);
            break;
        }
    }
    return CPU_COUNT(&plan->one) > 0 ? 0 : -1;
}

static int start(struct redis *server, const struct plan *plan)
{
#ifdef BENCH_TLS
    if (plan->only_over < 0 || plan->only_over == OVER_TLS)
        return redis_start_tls(server, &(struct redis_tls){0}, NULL);
#endif
    (void)plan;
    return redis_start(server, NULL);
}

static int bench(struct settings *settings)
{
    struct plan *plan = &settings->plan;
    struct redis server = {0};
    int failed = 1;

    plan->server = &server;
    if (choose_cpu(plan) || start(&server, plan))
        return 1;
    if (plan_make(plan) == 0) {
        int stopped = plan_run(plan);

        failed = report_print(plan) + stopped;
    }
    plan_free(plan);
    redis_stop(&server);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .plan = {.rounds = 15, .window_ns = 300000000, .only_over = -1},
    };

    if (parse(&settings, argc, argv)) {
        fputs("Try 'nxlock-bench --help'.\n", stderr);
        return 2;
    }
    if (settings.help) {
        fputs(help, stdout);
        return 0;
    }
    return bench(&settings);
}
