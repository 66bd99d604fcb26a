/* SPDX-License-Identifier: MIT */
/* nxlock-bench-wait: what it takes to wait for a lock that is taken. Contenders
 * for one name, each of which holds it for a moment, releases it and asks
 * again: the library, the library polling, and a floor by hand. Exit status: 0
 * everything was measured, and the lock never had two holders; 1 otherwise; 2
 * usage.
 */
#include "wait.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#define CROWD_PROCESSES 20
#define CROWD_BASE 8
#define LIST 8

static const char help[] =
    "usage: nxlock-bench-wait [options]\n"
    "Measures waiting for a lock that others hold. It starts a private server\n"
    "and stops it at the end. A LIST is numbers with commas, or 'none'.\n"
    "\n"
    "  --near LIST      contenders over loopback (2,8,32,100)\n"
    "  --far LIST       contenders with 1 ms of network (8,32)\n"
    "  --crowd LIST     waiting contenders in 20 processes (1000,10000) and\n"
    "                   8 to compare with\n"
    "  --processes N    of --near and --far (1)\n"
    "  --hold MS        how long each holds the lock (1; at most 100)\n"
    "  --ttl MS         the lease (30000; at least 1000)\n"
    "  --rounds N       (5)\n"
    "  --seconds S      of one measurement (1.5); longer until each has had\n"
    "                   20 turns, or in a crowd sent one heartbeat\n"
    "  --only PART      subjects with PART in their name, and the floor\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n";

static struct wait_run {
    struct wait_plan plan;
    unsigned near[LIST], far[LIST], crowd[LIST]; /* 0 ends them */
    unsigned processes;
    const char *only, *program;
    bool help;
} run;

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
    (void)signo;
    interrupted = 1;
}

/* --------------------------------------------------------------- options */

static int number(const char *text, double low, double high, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end == text || *end || !(*out >= low && *out <= high) ? -1 : 0;
}

static int list(const char *text, unsigned out[LIST])
{
    memset(out, 0, LIST * sizeof(*out));
    if (strcmp(text, "none") == 0)
        return 0;
    for (int i = 0; i < LIST - 1; i++) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (end == text || n < 1 || n > WAIT_MAX_CONTENDERS)
            return -1;
        out[i] = (unsigned)n;
        if (*end == '\0')
            return 0;
        if (*end != ',')
            return -1;
        text = end + 1;
    }
    return -1;
}

static int set(int option, const char *value)
{
    double n = 0;
    int rc = 0;

    switch (option) {
    case 'n':
        return list(value, run.near);
    case 'f':
        return list(value, run.far);
    case 'c':
        return list(value, run.crowd);
    case 'p':
        rc = number(value, 1, WAIT_MAX_PROCESSES, &n);
        run.processes = (unsigned)n;
        return rc;
    case 'H':
        return number(value, 0, 100, &run.plan.hold_ms);
    case 't':
        rc = number(value, 1000, 60000, &n);
        run.plan.ttl_ms = (int64_t)n;
        return rc;
    case 'r':
        rc = number(value, 1, BENCH_MAX_ROUNDS, &n);
        run.plan.rounds = (int)n;
        return rc;
    case 's':
        return number(value, 0.1, 3600, &run.plan.seconds);
    case 'o':
        run.only = value;
        return 0;
    case 'S':
        run.program = value;
        return 0;
    default:
        run.help = option == 'h';
        return run.help ? 0 : -1;
    }
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"near", required_argument, NULL, 'n'},
        {"far", required_argument, NULL, 'f'},
        {"crowd", required_argument, NULL, 'c'},
        {"processes", required_argument, NULL, 'p'},
        {"hold", required_argument, NULL, 'H'},
        {"ttl", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, which = 0;

    while ((option = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (option == '?')
            return -1;
        if (set(option, optarg)) {
            fprintf(stderr, "nxlock-bench-wait: --%s does not take '%s'\n",
                options[which].name, optarg);
            return -1;
        }
    }
    return optind < argc ? -1 : 0;
}

/* ------------------------------------------------------------------ plan */

static int add_case(
    const char *place, int port, unsigned contenders, unsigned processes)
{
    struct wait_plan *plan = &run.plan;
    struct wait_case *where = &plan->cases[plan->count++];

    *where = (struct wait_case){.place = place,
        .port = port,
        .contenders = contenders,
        .processes = processes < contenders ? processes : contenders};
    for (int i = 0; i < WAIT_SUBJECTS; i++) {
        where->samples[i] =
            calloc((size_t)plan->rounds, sizeof(**where->samples));
        if (!where->samples[i])
            return -1;
    }
    return 0;
}

static int add_crowd(int port, unsigned contenders)
{
    if (add_case("loopback", port, contenders, CROWD_PROCESSES))
        return -1;
    run.plan.cases[run.plan.count - 1].crowd = true;
    return 0;
}

static void add_subjects(void)
{
    struct wait_subject *subjects = run.plan.subjects;

    subjects[SUBJECT_FLOOR] = (struct wait_subject){"floor", wait_floor, ""};
    subjects[SUBJECT_LIBRARY] =
        (struct wait_subject){"nxlock", wait_library, ""};
    subjects[SUBJECT_POLL] =
        (struct wait_subject){"nxlock:poll", wait_library, "?poll=1"};
    for (int i = SUBJECT_LIBRARY; i < WAIT_SUBJECTS; i++) {
        if (run.only && subjects[i].name && !strstr(subjects[i].name, run.only))
            subjects[i].name = NULL;
    }
}

static int make_plan(void)
{
    struct wait_plan *plan = &run.plan;
    int port = plan->server.port;

    if (run.far[0] && delay_start(&plan->delay, port))
        return -1;
    for (unsigned *n = run.near; *n; n++) {
        if (add_case("loopback", port, *n, run.processes))
            return -1;
    }
    for (unsigned *n = run.far; *n; n++) {
        if (add_case("1 ms", plan->delay.port, *n, run.processes))
            return -1;
    }
    if (run.crowd[0] && add_crowd(port, CROWD_BASE))
        return -1;
    for (unsigned *n = run.crowd; *n; n++) {
        if (add_crowd(port, *n))
            return -1;
    }
    add_subjects();
    return 0;
}

static void measure_all(void)
{
    struct wait_plan *plan = &run.plan;

    for (int round = 0; round < plan->rounds; round++) {
        for (int i = 0; i < plan->count * WAIT_SUBJECTS; i++) {
            struct wait_case *where = &plan->cases[i / WAIT_SUBJECTS];
            int subject = (i + round) % WAIT_SUBJECTS;

            if (interrupted)
                return;
            if (plan->subjects[subject].name)
                wait_measure(plan, where, &plan->subjects[subject],
                    &where->samples[subject][round]);
        }
        plan->done++;
    }
}

static int bench(void)
{
    struct wait_plan *plan = &run.plan;
    int rc = 1;

    if (server_start(&plan->server, run.program, NULL))
        return 1;
    if (make_plan() == 0) {
        measure_all();
        rc = wait_report(plan) == 0 && plan->done > 0 ? 0 : 1;
    }
    delay_stop(&plan->delay);
    server_stop(&plan->server);
    for (int i = 0; i < plan->count * WAIT_SUBJECTS; i++)
        free(plan->cases[i / WAIT_SUBJECTS].samples[i % WAIT_SUBJECTS]);
    return rc;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};

    run.plan.rounds = 5;
    run.plan.seconds = 1.5;
    run.plan.ttl_ms = 30000;
    run.plan.hold_ms = 1;
    run.processes = 1;
    list("2,8,32,100", run.near);
    list("8,32", run.far);
    list("1000,10000", run.crowd);
    run.program = getenv("NXLOCK_REDIS_SERVER");
    if (!run.program)
        run.program = "redis-server";
    if (parse(argc, argv)) {
        fputs("Try 'nxlock-bench-wait --help'.\n", stderr);
        return 2;
    }
    if (run.help) {
        fputs(help, stdout);
        return 0;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return bench();
}
