/* SPDX-License-Identifier: MIT */
/* An acquire on five servers against one on one, with 1 ms of network before
 * each of them, all well, two hung and two killed; and the processor time of a
 * cycle on five servers against a floor. Rounds are interleaved, so that a slow
 * minute hits both sides. */
#include "cases.h"
#include "delay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { SERVERS = 5, QUORUM = 3, FAULTY = 2 };
enum { LATENCY_ROUNDS = 40, LATENCY_CYCLES = 25, CPU_CYCLES = 2000 };

static struct redis servers[SERVERS];
static struct delay delays[SERVERS];
static unsigned failed; /* calls */

/* ------------------------------------------------------------------- floor */

/* What hiredis and poll() alone reach. It keeps no deadline, survives no fault
 * and undoes nothing. Each reply is read, for the next one of its connection
 * comes behind it; nobody waits for the last two. */
static struct floor {
    redisContext *redis[SERVERS];
    unsigned due[SERVERS]; /* replies that have not come */
    unsigned long long tokens;
    char sha[41];
} own;

static int floor_open(void)
{
    memset(&own, 0, sizeof(own));
    for (int i = 0; i < SERVERS; i++) {
        redisReply *reply = NULL;

        own.redis[i] = redisConnectUnix(servers[i].path);
        if (own.redis[i] && !own.redis[i]->err)
            reply = redisCommand(own.redis[i], "SCRIPT LOAD %s", bench_release);
        if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != 40)
            return case_fail("the floor cannot connect");
        memcpy(own.sha, reply->str, sizeof(own.sha));
        freeReplyObject(reply);
        own.redis[i]->flags &= ~REDIS_BLOCK;
    }
    return 0;
}

static void floor_close(void)
{
    for (int i = 0; i < SERVERS; i++)
        redisFree(own.redis[i]);
}

/* Takes what server i has said; counts it if it was to the latest command. */
static int take(int i, unsigned *votes)
{
    redisReply *reply = NULL;

    if (redisBufferRead(own.redis[i]) != REDIS_OK)
        return -1;
    for (;;) {
        if (redisGetReplyFromReader(own.redis[i], (void **)&reply) != REDIS_OK)
            return -1;
        if (!reply)
            return 0;
        bool good = reply->type == REDIS_REPLY_STATUS ||
                    (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
        freeReplyObject(reply);
        if (!good)
            return -1;
        *votes += --own.due[i] == 0;
    }
}

/* One command at all of them, until a quorum has answered. */
static int round_of(int argc, const char **argv)
{
    struct pollfd fds[SERVERS];
    unsigned votes = 0;

    for (int i = 0; i < SERVERS; i++) {
        int done = 0;

        fds[i] = (struct pollfd){.fd = own.redis[i]->fd, .events = POLLIN};
        redisAppendCommandArgv(own.redis[i], argc, argv, NULL);
        if (redisBufferWrite(own.redis[i], &done) != REDIS_OK || !done)
            return -1;
        own.due[i]++;
    }
    while (votes < QUORUM) {
        if (poll(fds, SERVERS, -1) < 0 && errno != EINTR)
            return -1;
        for (int i = 0; i < SERVERS; i++)
            if (fds[i].revents && take(i, &votes) < 0)
                return -1;
    }
    return 0;
}

static int floor_cycle(void)
{
    char token[40];
    const char *acquire[] = {"SET", "floor", token, "NX", "PX", BENCH_TTL};
    const char *release[] = {"EVALSHA", own.sha, "1", "floor", token};

    snprintf(
        token, sizeof(token), "f1005f10-0000-4000-8000-%012llx", ++own.tokens);
    if (round_of(6, acquire) || round_of(5, release))
        return case_fail("the floor: an answer is wrong");
    return 0;
}

/* ----------------------------------------------------------------- subject */

/* Of the first count servers, straight or behind the network. */
static nxl_lock *subject(int count, bool network, nxl_client **client)
{
    char urls[1000] = "";

    for (int i = 0; i < count; i++) {
        size_t len = strlen(urls);

        if (network)
            snprintf(urls + len, sizeof(urls) - len, "%sredis://127.0.0.1:%d",
                i ? "," : "", delays[i].port);
        else
            snprintf(urls + len, sizeof(urls) - len, "%s%s", i ? "," : "",
                servers[i].unix_url);
    }
    /* They have just been started. */
    strcat(urls, "?guard_restarts=off");
    *client = case_client(urls);
    return case_lock(*client, count > 1 ? "five" : "one", NULL, 30000);
}

static int lock_cycle(nxl_lock *lock)
{
    if (nxl_lock_acquire(lock, 0) == NXL_OK && nxl_lock_release(lock) == NXL_OK)
        return 0;
    return case_fail("%s", nxl_lock_errmsg(lock));
}

/* The time of one acquire; the release is not measured. */
static uint64_t acquire(nxl_lock *lock)
{
    uint64_t before = bench_now_ns();
    int rc = nxl_lock_acquire(lock, 0);
    uint64_t took = bench_now_ns() - before;

    failed += rc != NXL_OK || nxl_lock_release(lock) != NXL_OK;
    return took;
}

/* ----------------------------------------------------------------- latency */

struct latency {
    double p50_us, p99_us, first_us;
};

static struct latency measure(
    nxl_lock *one, nxl_lock *five, struct latency *alone)
{
    static struct histogram of_one, of_five;
    struct latency found = {.first_us = (double)acquire(five) / 1000};

    memset(&of_one, 0, sizeof(of_one));
    memset(&of_five, 0, sizeof(of_five));
    for (int round = 0; round < LATENCY_ROUNDS; round++) {
        for (int i = 0; i < LATENCY_CYCLES; i++)
            histogram_add(&of_one, acquire(one));
        for (int i = 0; i < LATENCY_CYCLES; i++)
            histogram_add(&of_five, acquire(five));
    }
    alone->p50_us = histogram_us(&of_one, 0.5);
    found.p50_us = histogram_us(&of_five, 0.5);
    found.p99_us = histogram_us(&of_five, 0.99);
    return found;
}

static void compare(
    const char *how, const struct latency *well, nxl_lock *one, nxl_lock *five)
{
    struct latency alone, found = measure(one, five, &alone);
    char what[80];

    snprintf(what, sizeof(what), "two %s: p50, to all well", how);
    case_figure(what, "", found.p50_us / well->p50_us, 1.05);
    snprintf(what, sizeof(what), "two %s: p99, to all well", how);
    case_figure(what, "", found.p99_us / well->p99_us, 1.5);
    snprintf(what, sizeof(what), "two %s: the first, to p50, all well", how);
    case_figure(what, "", found.first_us / well->p50_us, 1.5);
}

/* The last ones are struck, so that the single server is not among them. */
static void latency(nxl_lock *one, nxl_lock *five)
{
    struct latency alone, well;

    for (int i = 0; i < BENCH_WARM; i++) {
        acquire(one);
        acquire(five);
    }
    well = measure(one, five, &alone);
    case_figure("all well: acquire, p50", " us", well.p50_us, 0);
    case_figure(
        "all well: p50, to one server", "", well.p50_us / alone.p50_us, 1.10);
    for (int i = SERVERS - FAULTY; i < SERVERS; i++)
        redis_freeze(&servers[i]);
    compare("hung", &well, one, five);
    for (int i = SERVERS - FAULTY; i < SERVERS; i++)
        redis_thaw(&servers[i]);
    for (int i = 0; i < BENCH_WARM; i++)
        acquire(five);
    for (int i = SERVERS - FAULTY; i < SERVERS; i++)
        redis_kill(&servers[i]);
    compare("killed", &well, one, five);
    case_figure("failed calls", "", failed, 0.5);
}

/* --------------------------------------------------------------------- CPU */

/* Of one cycle; lock NULL: of the floor. */
static int cycles(nxl_lock *lock, int count, double *us)
{
    double before = case_cpu_us();

    for (int i = 0; i < count; i++)
        if (lock ? lock_cycle(lock) : floor_cycle())
            return -1;
    *us = (case_cpu_us() - before) / count;
    return 0;
}

static int cpu(nxl_lock *lock)
{
    static double floors[BENCH_MAX_ROUNDS], ours[BENCH_MAX_ROUNDS];
    int rc = floor_open() || cycles(NULL, BENCH_WARM, floors) ||
             cycles(lock, BENCH_WARM, ours);

    for (int i = 0; rc == 0 && i < cases_run.rounds; i++)
        rc = cycles(NULL, CPU_CYCLES, &floors[i]) ||
             cycles(lock, CPU_CYCLES, &ours[i]);
    if (rc == 0)
        case_ratio("client CPU of a cycle, to the floor", ours, floors,
            cases_run.rounds, 1.15);
    floor_close();
    return rc;
}

int case_five(void)
{
    nxl_client *clients[3] = {NULL, NULL, NULL};
    int rc = 0;

    for (int i = 0; rc == 0 && i < SERVERS; i++)
        rc = redis_start(&servers[i], NULL) ||
             delay_start(&delays[i], servers[i].plain_port) ||
             delay_adjust(&delays[i], DELAY_FAR_US);
    if (rc == 0)
        rc = cpu(subject(SERVERS, false, &clients[0]));
    if (rc == 0)
        latency(
            subject(1, true, &clients[1]), subject(SERVERS, true, &clients[2]));
    for (int i = 0; i < 3; i++)
        nxl_client_free(clients[i]);
    for (int i = 0; i < SERVERS; i++) {
        delay_stop(&delays[i]);
        redis_stop(&servers[i]);
    }
    return rc ? -1 : 0;
}
