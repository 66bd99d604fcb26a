/* SPDX-License-Identifier: MIT */
/* Crowds of processes that want one name: who is granted the lock how often,
 * and how long each waits. They record it in shared memory.
 *
 * Invariant: no crowd is measured whose members hold more permits at a time
 * than there are, or a writer beside somebody: that is an error. */
#include "delay.h"
#include "cases.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS_MAX = 16 };
#define KEPT_NS 10000000 /* who waits for longer was kept from the lock */

static const struct lock_kind exclusive = {"", 0, 0}, reader = {"", 0, 1};

struct member {
    struct lock_kind kind;
    int64_t ttl_ms;
    unsigned hold_us, hold_more_us; /* a random part of it */
    unsigned rest_us, rest_more_us;
    pid_t pid;
};

/* In the window; written by one process only. */
struct place {
    _Atomic uint64_t grants, kept_ns, longest_ns, longest_hold_ns;
    struct histogram waits;
};

static struct board {
    _Atomic uint64_t begin_ns, end_ns; /* both 0: it is not open yet */
    atomic_bool stop;
    atomic_uint ready;
    atomic_int used, alone;
    _Atomic uint64_t broken, failures;
    char failure[200];
    struct place places[MEMBERS_MAX];
} * board;

static void pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

static void pause_between(unsigned us, unsigned more_us)
{
    if (us || more_us)
        pause_us(us + (more_us ? random() % more_us : 0));
}

/* ----------------------------------------------------------------- members */

static void check(const struct member *m)
{
    int permits = (int)m->kind.permits, used, alone;

    if (m->kind.permits || m->kind.shared)
        board->used++;
    else
        board->alone++;
    used = board->used;
    alone = board->alone;
    if (alone > 1 || (alone && used) || (permits && used > permits))
        board->broken++;
}

static void uncheck(const struct member *m)
{
    if (m->kind.permits || m->kind.shared)
        board->used--;
    else
        board->alone--;
}

static void record(struct place *place, uint64_t asked, uint64_t granted)
{
    uint64_t took = granted - asked;

    if (board->begin_ns == 0 || asked < board->begin_ns ||
        granted > board->end_ns)
        return;
    place->grants++;
    histogram_add(&place->waits, took);
    if (took > KEPT_NS)
        place->kept_ns += took;
    if (took > place->longest_ns)
        place->longest_ns = took;
}

static void fail_turn(nxl_lock *lock)
{
    if (board->failures++ == 0)
        snprintf(board->failure, sizeof(board->failure), "%s",
            nxl_lock_errmsg(lock));
}

static void take_turn(
    const struct member *m, struct place *place, nxl_lock *lock)
{
    uint64_t asked = bench_now_ns(), granted, held;

    if (nxl_lock_acquire(lock, 60000) != NXL_OK) {
        fail_turn(lock);
        return;
    }
    granted = bench_now_ns();
    record(place, asked, granted);
    check(m);
    pause_between(m->hold_us, m->hold_more_us);
    if (!nxl_lock_held(lock))
        fail_turn(lock);
    uncheck(m);
    held = bench_now_ns() - granted;
    if (held > place->longest_hold_ns)
        place->longest_hold_ns = held;
    if (nxl_lock_release(lock) != NXL_OK)
        fail_turn(lock);
    pause_between(m->rest_us, m->rest_more_us);
}

static void become_member(
    const struct member *m, struct place *place, const char *url)
{
    nxl_client *client = case_client(url);
    nxl_lock *lock = case_lock(client, CASE_NAME, &m->kind, m->ttl_ms);

    srandom((unsigned)getpid());
    board->ready++;
    while (!board->stop)
        take_turn(m, place, lock);
    nxl_lock_free(lock);
    nxl_client_free(client);
    _exit(0);
}

/* ------------------------------------------------------------------ crowds */

static int begin_crowd(struct member *members, int count, const char *url)
{
    pid_t parent = getpid();

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return case_fail("out of memory");
    fflush(NULL);
    for (int i = 0; i < count; i++) {
        members[i].pid = fork();
        if (members[i].pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_TIMERSLACK, 1ul);
            if (getppid() == parent)
                become_member(&members[i], &board->places[i], url);
            _exit(1);
        }
    }
    for (int i = 0; board->ready < (unsigned)count; i++) {
        if (i > 20000)
            return case_fail("the crowd does not begin");
        pause_us(1000);
    }
    pause_us(500000);
    return 0;
}

/* Opens the window for so long. */
static void measure_for(double seconds)
{
    uint64_t now = bench_now_ns();

    board->end_ns = now + (uint64_t)(seconds * 1e9);
    board->begin_ns = now;
    pause_us((long)(seconds * 1e6));
}

static int end_crowd(struct member *members, int count)
{
    board->stop = true;
    for (int i = 0; i < count; i++) {
        int status = -1;

        waitpid(members[i].pid, &status, 0);
        if (status != 0)
            return case_fail("a process failed");
    }
    if (board->broken)
        return case_fail(
            "%lu times too many held the lock", (unsigned long)board->broken);
    if (board->failures)
        return case_fail("%lu calls failed: %s", (unsigned long)board->failures,
            board->failure);
    return 0;
}

static void forget_crowd(void)
{
    munmap(board, sizeof(*board));
    board = NULL;
}

/* Of the members from first on. */
struct summary {
    struct histogram waits;
    uint64_t grants, least, most, kept_ns, longest_ns, longest_hold_ns;
};

static const struct summary *sum_up(int first, int count)
{
    static struct summary sum;

    memset(&sum, 0, sizeof(sum));
    sum.least = UINT64_MAX;
    for (int i = first; i < first + count; i++) {
        const struct place *place = &board->places[i];

        histogram_merge(&sum.waits, &place->waits);
        sum.grants += place->grants;
        sum.kept_ns += place->kept_ns;
        sum.least = place->grants < sum.least ? place->grants : sum.least;
        sum.most = place->grants > sum.most ? place->grants : sum.most;
        if (place->longest_ns > sum.longest_ns)
            sum.longest_ns = place->longest_ns;
        if (place->longest_hold_ns > sum.longest_hold_ns)
            sum.longest_hold_ns = place->longest_hold_ns;
    }
    return &sum;
}

static double p_ms(const struct summary *sum, double quantile)
{
    return histogram_us(&sum->waits, quantile) / 1000;
}

/* With MONITOR, after the window. */
static int follow_order(void)
{
    struct grants grants;
    double seconds = cases_run.seconds / 4;

    if (follow_grants(seconds < 2 ? 2 : seconds, &grants))
        return -1;
    if (grants.all == 0)
        return case_fail("no grant was seen");
    case_note("%lu grants were followed in the line", grants.all);
    case_figure("out of order", "", (double)grants.out_of_order, 0, 0.5);
    return 0;
}

int case_order(void)
{
    struct member members[12];
    const struct summary *sum;
    int rc;

    for (int i = 0; i < 12; i++)
        members[i] = (struct member){
            .kind = {"", 3, 0}, .ttl_ms = 10000, .hold_us = 1000};
    rc = begin_crowd(members, 12, cases_run.server.url);
    if (rc == 0) {
        measure_for(cases_run.seconds);
        sum = sum_up(0, 12);
        case_figure("grants a second", "",
            (double)sum->grants / cases_run.seconds, 0, 0);
        case_figure("most grants of one to least", "",
            (double)sum->most / (double)sum->least, 0, 1.1);
        rc = follow_order();
    }
    rc |= end_crowd(members, 12);
    forget_crowd();
    return rc;
}

int case_writer(void)
{
    struct member members[13];
    const struct summary *sum;
    double hold_ms;
    int rc;

    for (int i = 0; i < 12; i++)
        members[i] = (struct member){.kind = reader,
            .ttl_ms = 10000,
            .hold_us = 4000,
            .hold_more_us = 2000};
    members[12] = (struct member){.kind = exclusive,
        .ttl_ms = 10000,
        .hold_us = 1000,
        .rest_us = 10000,
        .rest_more_us = 20000};
    rc = begin_crowd(members, 13, cases_run.server.url);
    if (rc == 0) {
        measure_for(cases_run.seconds);
        sum = sum_up(0, 12);
        hold_ms = (double)sum->longest_hold_ns / 1e6;
        case_figure("grants to readers", "", (double)sum->grants, 0, 0);
        case_figure("the longest hold of a reader", " ms", hold_ms, 0, 0);
        sum = sum_up(12, 1);
        case_figure("grants to the writer", "", (double)sum->grants, 0, 0);
        case_figure("the writer waits, p50", " ms", p_ms(sum, 0.5), 0, 0);
        case_figure("the writer waits, p99, less that hold", " ms",
            p_ms(sum, 0.99) - hold_ms, -1e9, 5);
        case_figure("the writer's longest wait", " ms",
            (double)sum->longest_ns / 1e6, 0, 3000);
        rc = follow_order();
    }
    rc |= end_crowd(members, 13);
    forget_crowd();
    return rc;
}

/* ------------------------------------------------------------ three servers */

enum { VOTERS = 3, READERS = 8 };

static int one_quorum(const char *url, int writers)
{
    struct member members[READERS + 2];
    const struct summary *sum;
    char what[80];
    int count = READERS + writers, rc;

    for (int i = 0; i < count; i++)
        members[i] = (struct member){.kind = i < READERS ? reader : exclusive,
            .ttl_ms = 20000,
            .hold_us = 5000,
            .rest_us = i < READERS ? 0 : 5000};
    rc = begin_crowd(members, count, url);
    if (rc == 0)
        measure_for(cases_run.seconds);
    for (int k = 0; rc == 0 && k < 2; k++) {
        sum = k ? sum_up(READERS, writers) : sum_up(0, READERS);
        snprintf(what, sizeof(what), "%d writer%s: %s wait, p99 of %lu",
            writers, writers > 1 ? "s" : "", k ? "writers" : "readers",
            (unsigned long)sum->grants);
        case_figure(what, " ms", p_ms(sum, 0.99), 0, 1000);
        case_figure("the longest", " ms", (double)sum->longest_ns / 1e6, 0, 0);
    }
    rc |= end_crowd(members, count);
    forget_crowd();
    return rc;
}

int case_quorum(void)
{
    struct redis servers[VOTERS] = {{0}};
    struct delay delays[VOTERS] = {{0}};
    double load[1] = {0};
    char url[200] = "";
    int rc = 0;

    for (int i = 0; rc == 0 && i < VOTERS; i++) {
        rc = redis_start(&servers[i], NULL);
        if (rc == 0)
            rc = delay_start(&delays[i], servers[i].plain_port) ||
                 delay_adjust(&delays[i], DELAY_FAR_US);
        snprintf(url + strlen(url), sizeof(url) - strlen(url),
            "%sredis://127.0.0.1:%d", i ? "," : "", delays[i].port);
    }
    /* Without a pause after the start of the servers. */
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "?timeout_ms=2000&guard_restarts=off");
    for (int i = 0; rc == 0 && i < cases_run.rounds; i++) {
        (void)getloadavg(load, 1);
        case_note("load %.2f", load[0]);
        rc = one_quorum(url, 1) || one_quorum(url, 2);
    }
    for (int i = 0; i < VOTERS; i++) {
        delay_stop(&delays[i]);
        redis_stop(&servers[i]);
    }
    return rc ? -1 : 0;
}

/* ----------------------------------------------------- a program that polls */

/* Grants to a program that sends SET NX ten times a second. */
static unsigned poll_for(double seconds)
{
    redisContext *redis = case_connect();
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    unsigned grants = 0;

    while (redis && bench_now_ns() < end) {
        redisReply *reply =
            redisCommand(redis, "SET " CASE_NAME " stranger NX PX 10000");
        if (reply && reply->type == REDIS_REPLY_STATUS) {
            grants++;
            pause_us(5000);
            case_ask(redis, "EVAL %s 1 " CASE_NAME " stranger", bench_release);
        }
        freeReplyObject(reply);
        pause_us(100000);
    }
    if (redis)
        redisFree(redis);
    return grants;
}

int case_outside(void)
{
    struct member members[6];
    double seconds = cases_run.seconds < 92 ? 92 : cases_run.seconds;
    unsigned grants;
    uint64_t now;
    int rc;

    for (int i = 0; i < 6; i++)
        members[i] = (struct member){.kind = reader,
            .ttl_ms = 10000,
            .hold_us = 10000,
            .hold_more_us = 20000};
    rc = begin_crowd(members, 6, cases_run.server.url);
    if (rc == 0) {
        now = bench_now_ns();
        board->end_ns = now + (uint64_t)(seconds * 1e9);
        board->begin_ns = now;
        grants = poll_for(seconds);
        case_figure("grants a minute to a program that polls", "",
            grants * 60 / seconds, 1, 0);
        case_figure("time for which readers were kept waiting", " %",
            (double)sum_up(0, 6)->kept_ns / (seconds * 6 * 1e9) * 100, 0, 1);
    }
    rc |= end_crowd(members, 6);
    forget_crowd();
    return rc;
}

/* ------------------------------------------------------------ all are killed
 */

/* How long until the command's reply is 0, in ms, or so many. */
static double until_zero(redisContext *redis, const char *command, double most)
{
    uint64_t began = bench_now_ns();
    double ms = 0;

    while (case_ask(redis, command) > 0 && ms < most) {
        pause_us(1000);
        ms = (double)(bench_now_ns() - began) / 1e6;
    }
    return ms;
}

int case_litter(void)
{
    static const struct lock_kind kinds[] = {
        {"", 4, 0}, {"", 0, 1}, {"", 3, 0}, {"", 0, 0}};
    struct member members[12];
    redisContext *redis = case_connect();
    double left, gone;
    int rc;

    for (int i = 0; i < 12; i++)
        members[i] = (struct member){
            .kind = kinds[i % 4], .ttl_ms = 3000, .hold_us = 20000};
    rc = redis ? begin_crowd(members, 12, cases_run.server.url) : -1;
    for (int i = 0; rc == 0 && i < 12; i++)
        kill(members[i].pid, SIGKILL);
    for (int i = 0; rc == 0 && i < 12; i++)
        waitpid(members[i].pid, NULL, 0);
    if (rc == 0) {
        left = (double)case_ask(redis, "PTTL " CASE_NAME);
        case_figure("the key's last lease", " ms", left, 0, 0);
        gone = until_zero(redis, "EXISTS " CASE_NAME, 20000);
        case_figure("the key is gone after that", " ms",
            left < 0 ? 0 : gone - left, 0, 50);
        gone += until_zero(redis, "DBSIZE", 20000);
        case_figure("no key is left", " ms", gone, 0, 16000);
    }
    if (redis)
        redisFree(redis);
    forget_crowd();
    return rc;
}
