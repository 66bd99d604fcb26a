/* SPDX-License-Identifier: MIT */
/* nxlock-bench-cases: what locks cost beside the cycle that nxlock-bench
 * measures, and how long one waits for them. Exit status: 0 everything was
 * measured, whether or not the goals were met; 1 something was not; 2 wrong
 * usage. */
#include "cases.h"

#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cases_run cases_run = {.rounds = 15, .seconds = 10, .locks = 10000};

static const struct {
    const char *name;
    case_measure *measure;
} cases[] = {
    {"cost", case_cost},
    {"memory", case_memory},
    {"handoff", case_handoff},
    {"readers", case_readers},
    {"quorum", case_quorum},
    {"hold", case_hold},
    {"five", case_five},
    {"replicas", case_replicas},
    {"once", case_once},
};
#define CASES (sizeof(cases) / sizeof(*cases))

static const char help[] =
    "usage: nxlock-bench-cases [options] [CASE...]\n"
    "It starts private servers and stops them at the end. Without a CASE it\n"
    "measures all:\n"
    "\n"
    "Locks that several hold\n"
    "  cost     acquire and release beside holders, against the floor\n"
    "  memory   of a holder at the server\n"
    "  handoff  from a release to the next grant\n"
    "  readers  a thousand readers behind a writer\n"
    "  quorum   8 readers, 1 and 2 writers over three servers, 1 ms away\n"
    "Other locks\n"
    "  hold     many that are kept alive on one client\n"
    "  five     five servers, against one and a floor\n"
    "  replicas wait_replicas=1, against none\n"
    "  once     begin and done of work that is done once, to the floor\n"
    "\n"
    "  --rounds N       of each measurement (15)\n"
    "  --seconds S      of quorum and hold (10)\n"
    "  --locks N        that are kept alive (10000)\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n";

/* ------------------------------------------------------------------ output */

static const char *current; /* case */

static void print_row(
    const char *what, const char *seen, double value, double goal)
{
    bool met = goal <= 0 || value <= goal;

    printf("| %s | %s | %s | ", current, what, seen);
    if (goal > 0)
        printf("%g, %s |\n", goal, met ? "met" : "not met");
    else
        printf("|\n");
    cases_run.missed += !met;
}

void case_row(const char *what, const char *unit, const double *values,
    int count, double goal)
{
    double low = values[0], high = values[0];
    double median = median_of(values, count);
    char seen[120];

    for (int i = 1; i < count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    snprintf(seen, sizeof(seen), "%.4g%s [%.4g-%.4g]", median, unit, low, high);
    print_row(what, seen, median, goal);
}

void case_ratio(const char *what, const double *ours, const double *theirs,
    int count, double goal)
{
    static double ratio[BENCH_MAX_ROUNDS];

    for (int i = 0; i < count; i++)
        ratio[i] = ours[i] / theirs[i];
    case_row(what, "", ratio, count, goal);
}

void case_figure(const char *what, const char *unit, double value, double goal)
{
    char seen[60];

    snprintf(seen, sizeof(seen), "%.4g%s", value, unit);
    print_row(what, seen, value, goal);
}

void case_note(const char *format, ...)
{
    va_list arguments;

    printf("| %s | ", current);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" | | |\n");
}

int case_fail(const char *format, ...)
{
    va_list arguments;

    /* Words that tests/support/tally.py knows. */
    fprintf(stderr, "NOT AS EXPECTED: %s: ", current ? current : "start");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return -1;
}

/* ------------------------------------------------------------------ server */

void case_pin(bool one)
{
    static cpu_set_t all;
    static bool known;
    cpu_set_t here;

    if (!known)
        known = sched_getaffinity(0, sizeof(all), &all) == 0;
    here = all;
    for (size_t i = 0, kept = 0; one && i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &here) && kept++ > 0)
            CPU_CLR(i, &here);
    }
    sched_setaffinity(0, sizeof(here), &here);
    server_place(&cases_run.server, &here);
}

void case_pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

double case_cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

redisContext *case_connect(void)
{
    redisContext *redis = redisConnectUnix(cases_run.server.path);

    if (redis && !redis->err)
        return redis;
    case_fail("cannot connect to the server");
    if (redis)
        redisFree(redis);
    return NULL;
}

long long case_ask(redisContext *redis, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;
    long long result = -1;

    va_start(arguments, format);
    reply = redisvCommand(redis, format, arguments);
    va_end(arguments);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        result = reply->integer;
    freeReplyObject(reply);
    return result;
}

nxl_client *case_client(const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = NULL;
    char why[160] = "";

    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    if (nxl_client_new(&client, url, &options) != NXL_OK) {
        case_fail("%s", why);
        _exit(1);
    }
    return client;
}

nxl_lock *case_lock(nxl_client *client, const char *name,
    const struct lock_kind *kind, int64_t ttl_ms)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock = NULL;

    options.ttl_ms = ttl_ms;
    options.permits = kind ? kind->permits : 0;
    options.shared = kind ? kind->shared : 0;
    if (nxl_lock_new(&lock, client, name, &options) != NXL_OK) {
        case_fail("%s", nxl_client_errmsg(client));
        _exit(1);
    }
    return lock;
}

int case_turn(nxl_client *client, int64_t most_ms, struct case_ended *ended)
{
    struct pollfd fds[8];
    nxl_event event;
    int timeout_ms;
    size_t count = nxl_client_pollfds(client, fds, 8, &timeout_ms);

    if (timeout_ms < 0 || timeout_ms > most_ms)
        timeout_ms = (int)most_ms;
    poll(fds, count < 8 ? (nfds_t)count : 8, timeout_ms);
    if (nxl_client_process(client) != NXL_OK)
        return case_fail("process: %s", nxl_client_errmsg(client));
    while (nxl_client_next_event(client, &event)) {
        if (event.result != NXL_OK)
            return case_fail("%s", nxl_lock_errmsg(event.lock));
        ended->acquires += event.operation == NXL_OP_ACQUIRE;
        ended->releases += event.operation == NXL_OP_RELEASE;
    }
    return 0;
}

/* -------------------------------------------------------------------- main */

static bool set(int option, const char *value)
{
    double number = 0;

    switch (option) {
    case 'r':
        if (!bench_number(value, 1, BENCH_MAX_ROUNDS, &number))
            return false;
        cases_run.rounds = (int)number;
        return true;
    case 's':
        return bench_number(value, 0.2, 3600, &cases_run.seconds);
    case 'l':
        if (!bench_number(value, 1, 1000000, &number))
            return false;
        cases_run.locks = (int)number;
        return true;
    case 'S':
        return setenv("NXLOCK_REDIS_SERVER", value, 1) == 0;
    case 'h':
        fputs(help, stdout);
        exit(0);
    default:
        return false;
    }
}

static bool is_case(const char *name)
{
    for (size_t i = 0; i < CASES; i++) {
        if (strcmp(cases[i].name, name) == 0)
            return true;
    }
    return false;
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"locks", required_argument, NULL, 'l'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, rc = 0;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        rc |= set(option, optarg) ? 0 : -1;
    for (int i = optind; i < argc; i++)
        rc |= is_case(argv[i]) ? 0 : -1;
    if (rc)
        fputs(help, stderr);
    return rc;
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = optind; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return optind == argc;
}

/* Each case has a server of its own. */
static int measure_one(case_measure *measure)
{
    int rc = redis_start(&cases_run.server, NULL);

    if (rc != 0)
        exit(77); /* it may be skipped */
    rc = measure();
    case_pin(false);
    redis_stop(&cases_run.server);
    return rc;
}

int main(int argc, char **argv)
{
    double load[1] = {0};
    int rc = 0;

    if (parse(argc, argv))
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < CASES; i++) {
        if (!wanted(argc, argv, cases[i].name))
            continue;
        if (!current)
            printf("| case | | seen, medians | goal |\n|---|---|---|---|\n");
        current = cases[i].name;
        rc |= measure_one(cases[i].measure);
    }
    (void)getloadavg(load, 1);
    printf("\n%d rounds, load %.1f; goals not met: %d\n", cases_run.rounds,
        load[0], cases_run.missed);
    return rc == 0 ? 0 : 1;
}
