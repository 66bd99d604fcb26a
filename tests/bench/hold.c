/* SPDX-License-Identifier: MIT */
/* What it costs to keep many locks alive (options.renew) on one client: the
 * share of a processor, how the renewals are spread over their interval, and
 * how many locks were lost. Exit status: 0 none was; 1 one was, or nothing
 * could be measured; 2 usage. */
#include "bench.h"

#include <getopt.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nxlock.h>

static const char help[] =
    "usage: nxlock-bench-hold [options]\n"
    "Holds many locks that are renewed by one client, and tells what that\n"
    "costs. It starts a private server and stops it at the end.\n"
    "\n"
    "  --seconds S      how long (30)\n"
    "  --locks N        how many (10000)\n"
    "  --ttl MS         the lease of each (30000)\n"
    "  --door block     the library's thread renews (the default)\n"
    "  --door loop      a loop of this program's does\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n";

/* The busiest of so long pieces is shown, and one bar a tenth of the
 * interval. */
#define PIECE_NS 100000000u
#define PARTS 10

static struct hold_run {
    double seconds;
    int64_t ttl_ms;
    size_t count;
    bool loop, help;
    const char *program;
    struct server server;
    nxl_client *client;
    nxl_lock **lock;

    /* By the tracer, with the client locked. */
    atomic_bool open; /* the window */
    uint64_t begin_ns, pieces;
    unsigned *piece;
    uint64_t part[PARTS];
} run;

static void on_trace(void *arg, const nxl_trace *trace)
{
    (void)arg;
    if (trace->kind != NXL_TRACE_RENEWAL || trace->result != NXL_OK ||
        !run.open || trace->at_ns < run.begin_ns)
        return;
    uint64_t since = trace->at_ns - run.begin_ns;
    uint64_t interval = (uint64_t)run.ttl_ms * 1000000 / 3;
    if (since / PIECE_NS < run.pieces)
        run.piece[since / PIECE_NS]++;
    run.part[since % interval * PARTS / interval]++;
}

static int number(const char *text, double low, double high, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end == text || *end || !(*out >= low && *out <= high) ? -1 : 0;
}

static int set(int option, const char *value)
{
    double n;

    switch (option) {
    case 's':
        return number(value, 0.1, 86400, &run.seconds);
    case 'l':
        if (number(value, 1, 1000000, &n))
            return -1;
        run.count = (size_t)n;
        return 0;
    case 't':
        if (number(value, 100, 600000, &n))
            return -1;
        run.ttl_ms = (int64_t)n;
        return 0;
    case 'd':
        run.loop = strcmp(value, "loop") == 0;
        return run.loop || strcmp(value, "block") == 0 ? 0 : -1;
    case 'S':
        run.program = value;
        return 0;
    case 'h':
        run.help = true;
        return 0;
    default:
        return -1;
    }
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"locks", required_argument, NULL, 'l'},
        {"ttl", required_argument, NULL, 't'},
        {"door", required_argument, NULL, 'd'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, which = 0;

    while ((option = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (option == '?')
            return -1;
        if (set(option, optarg)) {
            fprintf(stderr, "nxlock-bench-hold: --%s does not take '%s'\n",
                options[which].name, optarg);
            return -1;
        }
    }
    return optind < argc ? -1 : 0;
}

/* ------------------------------------------------------------------- loop */

static size_t turn(int64_t most_ms, size_t *granted)
{
    struct pollfd fds[8];
    nxl_event event;
    size_t events = 0;
    int timeout_ms;
    size_t n = nxl_client_pollfds(run.client, fds, 8, &timeout_ms);

    if (timeout_ms < 0 || timeout_ms > most_ms)
        timeout_ms = (int)most_ms;
    poll(fds, n < 8 ? (nfds_t)n : 8, timeout_ms);
    if (nxl_client_process(run.client) != NXL_OK)
        return events;
    while (nxl_client_next_event(run.client, &event)) {
        events++;
        *granted += event.operation == NXL_OP_ACQUIRE && event.result == NXL_OK;
    }
    return events;
}

static void wait_for(double seconds)
{
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    size_t none = 0;

    for (uint64_t now; (now = bench_now_ns()) < end;) {
        int64_t left_ms = (int64_t)((end - now) / 1000000) + 1;
        struct timespec pause = {left_ms / 1000, left_ms % 1000 * 1000000};
        if (run.loop)
            turn(left_ms, &none);
        else
            nanosleep(&pause, NULL);
    }
}

/* ---------------------------------------------------------------- the run */

static int acquire_all(void)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    size_t granted = 0, told = 0, pending = 0;

    options.ttl_ms = run.ttl_ms;
    options.renew = 1;
    for (size_t i = 0; i < run.count; i++) {
        char name[BENCH_NAME_SIZE];
        bench_name(name, (int)i);
        if (nxl_lock_new(&run.lock[i], run.client, name, &options) != NXL_OK)
            return -1;
        int rc = run.loop ? nxl_lock_acquire_start(run.lock[i], 0)
                          : nxl_lock_acquire(run.lock[i], 0);
        granted += rc == NXL_OK;
        pending += rc == NXL_PENDING;
    }
    while (told < pending)
        told += turn(1000, &granted);
    if (granted == run.count)
        return 0;
    fprintf(stderr, "nxlock-bench-hold: %zu of %zu locks: %s\n", granted,
        run.count, nxl_client_errmsg(run.client));
    return -1;
}

static double cpu_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

static void show_spread(void)
{
    uint64_t most = 1;

    for (int i = 0; i < PARTS; i++)
        most = run.part[i] > most ? run.part[i] : most;
    printf("renewals by tenths of the interval (%lld ms):\n",
        (long long)run.ttl_ms / 3);
    for (int i = 0; i < PARTS; i++)
        printf("  %2d  %8llu  %.*s\n", i, (unsigned long long)run.part[i],
            (int)(run.part[i] * 50 / most),
            "##################################################");
    qsort(run.piece, run.pieces, sizeof(*run.piece), compare);
    printf("renewals in 100 ms: least %u, median %u, most %u\n", run.piece[0],
        run.piece[run.pieces / 2], run.piece[run.pieces - 1]);
}

static int report(const struct rusage *from, const struct rusage *to,
    const nxl_stats *before, double seconds)
{
    nxl_stats after;
    size_t held = 0;

    if (nxl_client_stats(run.client, &after, sizeof(after)) != NXL_OK)
        return -1;
    for (size_t i = 0; i < run.count; i++)
        held += nxl_lock_held(run.lock[i]);
    uint64_t renewals = after.renewals - before->renewals;
    double cpu = cpu_of(to) - cpu_of(from);
    printf("%zu locks of %lld ms for %.1f s, %s door, server %s\n", run.count,
        (long long)run.ttl_ms, seconds, run.loop ? "loop" : "blocking",
        run.server.version);
    printf("processor: %.2f %% of one, %.1f us a renewal, %.0f renewals a "
           "second\n",
        100 * cpu / seconds, renewals ? 1e6 * cpu / (double)renewals : 0.0,
        (double)renewals / seconds);
    printf("switches: %.2f a renewal; resident: %ld kB\n",
        renewals ? (double)(to->ru_nvcsw - from->ru_nvcsw) / (double)renewals
                 : 0.0,
        to->ru_maxrss);
    show_spread();
    printf("failed and tried again: %llu; least left when renewed: %llu ms\n",
        (unsigned long long)(after.renewal_failures - before->renewal_failures),
        (unsigned long long)after.least_slack_ms);
    printf("held: %zu; lost: %llu\n", held, (unsigned long long)after.losses);
    return held == run.count && after.losses == 0 ? 0 : -1;
}

static int measure(void)
{
    struct rusage from, to;
    nxl_stats before;

    run.pieces = (uint64_t)(run.seconds * 1e9 / PIECE_NS);
    run.pieces += run.pieces == 0;
    run.lock = calloc(run.count, sizeof(nxl_lock *));
    run.piece = calloc(run.pieces, sizeof(*run.piece));
    if (!run.lock || !run.piece || acquire_all() ||
        nxl_client_stats(run.client, &before, sizeof(before)) != NXL_OK)
        return -1;
    run.begin_ns = nxl_now_ns();
    run.open = true;
    getrusage(RUSAGE_SELF, &from);
    uint64_t begin = bench_now_ns();
    wait_for(run.seconds);
    getrusage(RUSAGE_SELF, &to);
    run.open = false;
    return report(&from, &to, &before, (double)(bench_now_ns() - begin) / 1e9);
}

static int bench(void)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    int rc = -1;

    options.tracer = on_trace;
    options.max_ttl_ms = run.ttl_ms > 60000 ? run.ttl_ms : 0;
    const char *may_skip = getenv("NXLOCK_SKIP_LIVE"); /* as the tests do */
    if (server_start(&run.server, run.program, NULL))
        return may_skip && strcmp(may_skip, "1") == 0 ? 77 : 1;
    if (nxl_client_new(&run.client, run.server.unix_url, &options) == NXL_OK)
        rc = measure();
    for (size_t i = 0; run.lock && i < run.count; i++)
        nxl_lock_free(run.lock[i]);
    nxl_client_free(run.client);
    free(run.lock);
    free(run.piece);
    server_stop(&run.server);
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    run.seconds = 30;
    run.ttl_ms = 30000;
    run.count = 10000;
    run.program = getenv("NXLOCK_REDIS_SERVER");
    if (!run.program)
        run.program = "redis-server";
    if (parse(argc, argv)) {
        fputs("Try 'nxlock-bench-hold --help'.\n", stderr);
        return 2;
    }
    if (run.help) {
        fputs(help, stdout);
        return 0;
    }
    return bench();
}
