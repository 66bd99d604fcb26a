/* SPDX-License-Identifier: MIT */
/* One sample: forks the processes of contenders, opens the window when they
 * are warm, and adds up what they recorded. */
#include "wait.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_SECONDS 0.5
/* With fewer turns for each contender, one more or less is several per cent. */
#define TURNS 20
#define HAND_OFF_MS 0.3 /* about, besides the round trip */
#define READY_NS 20000000000u
#define WARM_NS 1000000000u
#define CROWD_WARM_NS 30000000000u
/* Without a line after this time, the contenders poll. */
#define POLLS_NS 1000000000u
#define SETTLE_NS 100000000u /* after the last grant of a pause */
#define END_NS 10000000000u
#define PINGS 200

struct sampling {
    const struct wait_plan *plan;
    const struct wait_case *where;
    const struct wait_subject *subject;
    struct wait_sample *sample;
    struct wait_shared *shared;
    char name[BENCH_NAME_SIZE];
    pid_t pids[WAIT_MAX_PROCESSES];
};

static void pause_ns(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    while (nanosleep(&time, &time) != 0)
        ;
}

static int fail(struct wait_sample *sample, const char *why)
{
    snprintf(sample->error, sizeof(sample->error), "%s", why);
    sample->ok = false;
    return -1;
}

double wait_beat_seconds(int64_t ttl_ms)
{
    double beat = (double)ttl_ms / 10000;

    return beat < 0.1 ? 0.1 : beat > 3 ? 3 : beat;
}

/* ------------------------------------------------------------- processes */

static void become_contender(struct sampling *s, unsigned process)
{
    const struct wait_case *where = s->where;
    struct contest contest = {.shared = s->shared,
        .process = process,
        .name = s->name,
        .port = where->port,
        .ttl_ms = s->plan->ttl_ms,
        .hold_ns = (uint64_t)(s->plan->hold_ms * 1e6)};
    unsigned first = where->contenders * process / where->processes;
    unsigned next = where->contenders * (process + 1) / where->processes;
    char url[64];
    int rc;

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d%s", where->port,
        s->subject->query);
    contest.url = url;
    contest.seats = s->shared->seats + first;
    contest.count = next - first;
    prctl(PR_SET_TIMERSLACK, 1ul);
    rc = contest_open(&contest);
    if (rc == 0)
        rc = s->subject->run(&contest);
    contest_close(&contest);
    _exit(rc == 0 ? 0 : 1);
}

static void start_all(struct sampling *s)
{
    pid_t parent = getpid();

    fflush(NULL);
    for (unsigned i = 0; i < s->where->processes; i++) {
        s->pids[i] = fork();
        if (s->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                become_contender(s, i);
            _exit(1);
        }
    }
}

/* Stops all processes; those that do not end in time are killed. */
static int stop_all(struct sampling *s)
{
    uint64_t end = bench_now_ns() + END_NS;
    unsigned bad = 0;

    s->shared->stop = true;
    for (unsigned i = 0; i < s->where->processes; i++) {
        int status = -1;

        if (s->pids[i] <= 0) {
            bad++;
            continue;
        }
        while (waitpid(s->pids[i], &status, WNOHANG) == 0) {
            if (bench_now_ns() > end)
                kill(s->pids[i], SIGKILL);
            pause_ns(2000000);
        }
        bad += status != 0;
    }
    if (bad == 0)
        return 0;
    return fail(
        s->sample, s->shared->failed ? s->shared->error : "a process died");
}

/* --------------------------------------------------------------- the run */

static bool all_granted(const struct sampling *s)
{
    for (unsigned i = 0; i < s->where->contenders; i++) {
        if (s->shared->seats[i].ever == 0)
            return false;
    }
    return true;
}

/* Nearly all wait in line; a few are between release and join. */
static bool all_in_line(const struct sampling *s, uint64_t since_ns)
{
    long long length = wait_line_length(s->plan->server.port, s->name);
    unsigned most = s->where->contenders;

    if (length <= 0 && bench_now_ns() - since_ns > POLLS_NS)
        return true;
    return length + 2 + most / 50 >= most;
}

static int await_warm(struct sampling *s)
{
    uint64_t begin = bench_now_ns();
    uint64_t warm_ns = s->where->crowd ? CROWD_WARM_NS : WARM_NS;

    while (s->shared->ready < s->where->processes) {
        if (s->shared->failed || bench_now_ns() - begin > READY_NS)
            return -1;
        pause_ns(2000000);
    }
    begin = bench_now_ns();
    while (bench_now_ns() - begin < warm_ns) {
        if (s->where->crowd ? all_in_line(s, begin) : all_granted(s))
            break;
        pause_ns(20000000);
    }
    return s->shared->failed ? -1 : 0;
}

static double server_seconds(const struct sampling *s)
{
    return wait_server_seconds(s->plan->server.port);
}

/* The window. Returns the server's processor time per acquisition. */
static void measure_window(struct sampling *s, double seconds)
{
    double cpu = server_seconds(s);
    uint64_t total = s->shared->total;
    uint64_t begin = bench_now_ns();
    uint64_t end = begin + (uint64_t)(seconds * 1e9);

    s->shared->end_ns = end;
    s->shared->begin_ns = begin;
    pause_ns(end - begin);
    total = s->shared->total - total;
    cpu = server_seconds(s) - cpu;
    s->sample->server_us = total ? cpu * 1e6 / (double)total : 0;
}

/* What the server takes for one STAY: while the holder keeps the lock and all
 * others wait, there are no other scripts. */
static void measure_rest(struct sampling *s, double seconds)
{
    double most = (double)s->plan->ttl_ms / 2000; /* the lease must not end */
    int port = s->plan->server.port;

    seconds = seconds < most ? seconds : most;
    s->shared->pause = true;
    pause_ns((uint64_t)(s->plan->hold_ms * 2e6) + SETTLE_NS);
    struct wait_scripts before = wait_server_scripts(port);
    pause_ns((uint64_t)(seconds * 1e9));
    struct wait_scripts after = wait_server_scripts(port);
    s->shared->pause = false;
    if (after.calls > before.calls)
        s->sample->stay_us =
            (after.us - before.us) / (after.calls - before.calls);
}

/* Adds the seats up, at the end of the window. */
static void add_up(struct sampling *s, double seconds)
{
    struct wait_shared *shared = s->shared;
    struct wait_sample *sample = s->sample;
    uint64_t most = 0, least = UINT64_MAX, total = 0, longest_ns = 0;

    for (unsigned i = 0; i < s->where->contenders; i++) {
        struct seat *seat = &shared->seats[i];
        uint64_t granted = seat->granted, since = seat->since_ns;

        total += granted;
        most = granted > most ? granted : most;
        least = granted < least ? granted : least;
        sample->starved += granted == 0;
        if (seat->longest_ns > longest_ns)
            longest_ns = seat->longest_ns;
        if (since != 0 && since < shared->end_ns &&
            shared->end_ns - since > longest_ns)
            longest_ns = shared->end_ns - since;
    }
    sample->rate = (double)total / seconds;
    sample->p50_us = histogram_us(&shared->handoff, 0.5);
    sample->p99_us = histogram_us(&shared->handoff, 0.99);
    sample->max_min = least ? (double)most / (double)least : INFINITY;
    sample->longest_ms = (double)longest_ns / 1e6;
    sample->ok = total > 0;
    if (total == 0)
        fail(sample, "no acquisition in the window");
}

static double window_seconds(const struct sampling *s)
{
    double turn_ms = s->plan->hold_ms + s->sample->rtt_us / 1000 + HAND_OFF_MS;
    double least = s->where->crowd
                       ? wait_beat_seconds(s->plan->ttl_ms)
                       : TURNS * turn_ms * s->where->contenders / 1000;

    return s->plan->seconds > least ? s->plan->seconds : least;
}

static void measure(struct sampling *s)
{
    bool crowd = s->where->crowd;
    double seconds = window_seconds(s);
    double count_seconds =
        crowd ? wait_beat_seconds(s->plan->ttl_ms) : COUNT_SECONDS;

    measure_window(s, seconds);
    add_up(s, seconds);
    if (count_seconds > s->plan->seconds && !crowd)
        count_seconds = s->plan->seconds;
    wait_count_requests(
        s->plan->server.port, count_seconds, s->shared, &s->sample->requests);
    if (crowd)
        measure_rest(s, seconds);
}

bool wait_measure(const struct wait_plan *plan, const struct wait_case *where,
    const struct wait_subject *subject, struct wait_sample *sample)
{
    struct sampling s = {plan, where, subject, sample, .shared = NULL};
    size_t size = sizeof(*s.shared) + where->contenders * sizeof(struct seat);
    struct histogram rtt = {0};
    static int samples;

    if (where->port == plan->delay.port &&
        delay_adjust(&plan->delay, WAIT_FAR_US))
        return fail(sample, "the proxy does not answer") == 0;
    if (wait_ping(where->port, PINGS, &rtt))
        return fail(sample, "the server does not answer") == 0;
    sample->rtt_us = histogram_us(&rtt, 0.5);
    sample->rtt_p99_us = histogram_us(&rtt, 0.99);
    bench_name(s.name, samples++);
    s.shared = mmap(
        NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED)
        return fail(sample, "out of memory") == 0;
    start_all(&s);
    if (await_warm(&s) == 0)
        measure(&s);
    else
        fail(sample, "the contenders did not begin");
    sample->overlaps = s.shared->overlaps;
    sample->failures = s.shared->failures;
    snprintf(sample->failure, sizeof(sample->failure), "%s", s.shared->failure);
    if (stop_all(&s))
        sample->ok = false;
    wait_remove_keys(plan->server.port, s.name);
    munmap(s.shared, size);
    return sample->ok;
}
