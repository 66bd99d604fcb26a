/* SPDX-License-Identifier: MIT */
/* What it costs to keep many locks alive (options.renew) on one client, by the
 * library's thread or by a loop of this program: the share of a processor, how
 * the renewals are spread over their interval, and how many locks were lost,
 * which must be none. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The busiest of so long pieces is shown, and the fullest tenth of the
 * interval. */
#define PIECE_NS 100000000u
#define PARTS 10

static struct hold {
    bool loop;
    int64_t ttl_ms;
    nxl_client *client;
    nxl_lock **lock;
    /* By the tracer, with the client locked. */
    atomic_bool open; /* the window */
    uint64_t begin_ns, pieces;
    unsigned *piece;
    uint64_t part[PARTS];
} hold;

static void on_trace(void *arg, const nxl_trace *trace)
{
    (void)arg;
    if (trace->kind != NXL_TRACE_RENEWAL || trace->result != NXL_OK ||
        !hold.open || trace->at_ns < hold.begin_ns)
        return;
    uint64_t since = trace->at_ns - hold.begin_ns;
    uint64_t interval = (uint64_t)hold.ttl_ms * 1000000 / 3;
    if (since / PIECE_NS < hold.pieces)
        hold.piece[since / PIECE_NS]++;
    hold.part[since % interval * PARTS / interval]++;
}

static int wait_for(double seconds)
{
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    struct case_ended none;
    int rc = 0;

    for (uint64_t now; rc == 0 && (now = bench_now_ns()) < end;) {
        int64_t left_ms = (int64_t)((end - now) / 1000000) + 1;
        struct timespec pause = {left_ms / 1000, left_ms % 1000 * 1000000};

        if (hold.loop)
            rc = case_turn(hold.client, left_ms, &none);
        else
            nanosleep(&pause, NULL);
    }
    return rc;
}

static int acquire_all(void)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    struct case_ended ended = {0, 0};
    int rc = NXL_OK;

    options.ttl_ms = hold.ttl_ms;
    options.renew = 1;
    for (int i = 0; rc == NXL_OK && i < cases_run.locks; i++) {
        char name[BENCH_NAME_SIZE];

        bench_name(name, i + (hold.loop ? cases_run.locks : 0));
        rc = nxl_lock_new(&hold.lock[i], hold.client, name, &options);
        if (rc == NXL_OK && hold.loop)
            rc = nxl_lock_acquire_start(hold.lock[i], 0) == NXL_PENDING
                     ? NXL_OK
                     : NXL_BUSY;
        else if (rc == NXL_OK)
            rc = nxl_lock_acquire(hold.lock[i], 0);
    }
    if (rc != NXL_OK)
        return case_fail("%s", nxl_client_errmsg(hold.client));
    while (hold.loop && ended.acquires < cases_run.locks)
        if (case_turn(hold.client, 1000, &ended))
            return -1;
    return 0;
}

static void figure(const char *what, const char *unit, double value)
{
    char words[120];

    snprintf(words, sizeof(words), "%d locks of %.0f s, %s: %s",
        cases_run.locks, (double)hold.ttl_ms / 1000,
        hold.loop ? "a loop" : "the library's thread", what);
    case_figure(words, unit, value, 0);
}

static int report(double cpu, double seconds, const nxl_stats *before)
{
    nxl_stats after;
    unsigned busiest = 0;
    uint64_t fullest = 0, renewals;
    int held = 0;

    if (nxl_client_stats(hold.client, &after, sizeof(after)) != NXL_OK)
        return case_fail("no statistics");
    for (int i = 0; i < cases_run.locks; i++)
        held += nxl_lock_held(hold.lock[i]);
    for (uint64_t i = 0; i < hold.pieces; i++)
        busiest = hold.piece[i] > busiest ? hold.piece[i] : busiest;
    for (int i = 0; i < PARTS; i++)
        fullest = hold.part[i] > fullest ? hold.part[i] : fullest;
    renewals = after.renewals - before->renewals;
    figure("of a processor", " %", 100 * cpu / seconds);
    figure("a renewal", " us", 1e6 * cpu / (double)(renewals ? renewals : 1));
    figure("renewals a second", "", (double)renewals / seconds);
    figure("in the busiest 100 ms", "", busiest);
    figure("in the fullest tenth of the interval", " %",
        100 * (double)fullest / (double)(renewals ? renewals : 1));
    figure("least left when renewed", " ms", (double)after.least_slack_ms);
    if (held < cases_run.locks || after.losses > 0)
        return case_fail("%d of %d locks are held, %llu were lost", held,
            cases_run.locks, (unsigned long long)after.losses);
    return 0;
}

static int measure(void)
{
    nxl_stats before;
    double cpu;
    int rc;

    if (acquire_all() ||
        nxl_client_stats(hold.client, &before, sizeof(before)) != NXL_OK)
        return -1;
    hold.begin_ns = nxl_now_ns();
    hold.open = true;
    cpu = case_cpu_us();
    rc = wait_for(cases_run.seconds);
    cpu = (case_cpu_us() - cpu) / 1e6;
    hold.open = false;
    return rc ? rc : report(cpu, cases_run.seconds, &before);
}

/* A short measurement has shorter leases, which are renewed in it too. */
static int hold_by(bool loop)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    int rc = -1;

    hold = (struct hold){.loop = loop,
        .ttl_ms = cases_run.seconds < 20 ? (int64_t)(cases_run.seconds * 1500)
                                         : 30000,
        .pieces = (uint64_t)(cases_run.seconds * 1e9 / PIECE_NS) + 1};
    hold.lock = calloc((size_t)cases_run.locks, sizeof(nxl_lock *));
    hold.piece = calloc(hold.pieces, sizeof(*hold.piece));
    options.tracer = on_trace;
    if (hold.lock && hold.piece &&
        nxl_client_new(&hold.client, cases_run.server.unix_url, &options) ==
            NXL_OK)
        rc = measure();
    for (int i = 0; hold.lock && i < cases_run.locks; i++)
        nxl_lock_free(hold.lock[i]);
    nxl_client_free(hold.client);
    free(hold.lock);
    free(hold.piece);
    return rc;
}

int case_hold(void)
{
    return hold_by(false) || hold_by(true) ? -1 : 0;
}
