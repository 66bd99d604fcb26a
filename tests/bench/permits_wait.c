/* SPDX-License-Identifier: MIT */
/* How long one waits for a lock that several hold: after a release, after the
 * death of a holder, and as one of a thousand readers behind a writer. */
#include "delay.h"
#include "cases.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

#define EXCLUSIVE                                                              \
    {                                                                          \
        "", 0, 0                                                               \
    }
#define READER                                                                 \
    {                                                                          \
        "", 0, 1                                                               \
    }
#define OF(permits)                                                            \
    {                                                                          \
        "", permits, 0                                                         \
    }

/* --------------------------------------------------------------- a release */

/* The holder releases, beside others who do not, and the waiter is next. */
static const struct scene {
    const char *words;
    struct lock_kind holder, waiter;
    int others;
} scenes[] = {
    {"exclusive", EXCLUSIVE, EXCLUSIVE, 0},
    {"2 of 2 permits", OF(2), OF(2), 1},
    {"64 of 64 permits", OF(64), OF(64), 63},
    {"a reader after a writer", EXCLUSIVE, READER, 0},
    {"a writer after a reader", READER, EXCLUSIVE, 0},
};
enum { SCENES = sizeof(scenes) / sizeof(*scenes), SAMPLES = 20 };
enum { OTHERS_MAX = 63 };

static struct stage {
    nxl_lock *waiter;
    sem_t begin, done;
    bool over;
    int result;
    uint64_t granted_ns;
} stage;

static void *wait_in_line(void *argument)
{
    (void)argument;
    for (;;) {
        sem_wait(&stage.begin);
        if (stage.over)
            return NULL;
        stage.result = nxl_lock_acquire(stage.waiter, 20000);
        stage.granted_ns = bench_now_ns();
        sem_post(&stage.done);
    }
}

/* Until so many wait in line, and a while longer: so that their messages have
 * been subscribed. */
static int await_line(redisContext *redis, long long count, long settle_us)
{
    uint64_t end = bench_now_ns() + UINT64_C(20000000000);

    while (case_ask(redis, "ZCARD " CASE_LINE) < count) {
        if (bench_now_ns() > end)
            return case_fail("%lld did not join the line", count);
        pause_us(200);
    }
    pause_us(settle_us);
    return 0;
}

static int hand_over(
    redisContext *redis, nxl_lock *holder, long settle_us, uint64_t *took_ns)
{
    uint64_t began;

    if (nxl_lock_acquire(holder, 5000) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(holder));
    sem_post(&stage.begin);
    if (await_line(redis, 1, settle_us))
        return -1;
    began = bench_now_ns();
    if (nxl_lock_release(holder) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(holder));
    sem_wait(&stage.done);
    *took_ns = stage.granted_ns - began;
    if (stage.result != NXL_OK || nxl_lock_release(stage.waiter) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(stage.waiter));
    return 0;
}

/* Median of some hand-overs, in microseconds. */
static int hand_overs(redisContext *redis, const struct scene *scene,
    const char *url, long settle_us, double *p50_us)
{
    nxl_client *client = case_client(cases_run.server.unix_url),
               *near = case_client(url), *far = case_client(url);
    nxl_lock *holder = case_lock(near, CASE_NAME, &scene->holder, 30000);
    double us[SAMPLES];
    pthread_t thread;
    int rc = 0;

    stage.waiter = case_lock(far, CASE_NAME, &scene->waiter, 30000);
    stage.over = false;
    if (pthread_create(&thread, NULL, wait_in_line, NULL) != 0)
        return case_fail("no thread");
    for (int i = 0; i < scene->others; i++) {
        nxl_lock *other = case_lock(client, CASE_NAME, &scene->holder, 30000);
        rc |= nxl_lock_acquire(other, 0);
    }
    for (int i = -1; rc == 0 && i < SAMPLES; i++) {
        uint64_t ns = 0;

        rc = hand_over(redis, holder, settle_us, &ns);
        us[i < 0 ? 0 : i] = (double)ns / 1000;
    }
    *p50_us = median_of(us, SAMPLES);
    stage.over = true;
    sem_post(&stage.begin);
    pthread_join(thread, NULL);
    nxl_client_free(near);
    nxl_client_free(far);
    nxl_client_free(client);
    case_remove_keys();
    return rc;
}

static void print_handoffs(
    double us[2][SCENES][BENCH_MAX_ROUNDS], const double *rtt_us)
{
    int rounds = cases_run.rounds;
    char what[100];

    for (int s = 0; s < SCENES; s++) {
        snprintf(what, sizeof(what), "%s: loopback", scenes[s].words);
        case_row(what, " us", us[0][s], rounds, 0);
        snprintf(
            what, sizeof(what), "%s: loopback, to exclusive", scenes[s].words);
        if (s > 0)
            case_ratio(what, us[0][s], us[0][0], rounds, 1.5);
        snprintf(what, sizeof(what),
            "%s: 1 ms away, in round trips (of %.0f us)", scenes[s].words,
            median_of(rtt_us, rounds));
        case_ratio(what, us[1][s], rtt_us, rounds, 1.25);
    }
}

int case_handoff(void)
{
    static double us[2][SCENES][BENCH_MAX_ROUNDS], rtt_us[BENCH_MAX_ROUNDS];
    struct delay delay = {0};
    redisContext *redis = case_connect();
    char far[64];
    int rc = redis ? delay_start(&delay, cases_run.server.plain_port) : -1;

    sem_init(&stage.begin, 0, 0);
    sem_init(&stage.done, 0, 0);
    snprintf(far, sizeof(far), "redis://127.0.0.1:%d", delay.port);
    for (int i = 0; rc == 0 && i < cases_run.rounds; i++) {
        struct histogram pings = {0};

        rc = delay_adjust(&delay, DELAY_FAR_US) ||
             delay_ping(&delay, 200, &pings);
        rtt_us[i] = histogram_us(&pings, 0.5);
        for (int s = 0; rc == 0 && s < SCENES; s++)
            rc = hand_overs(redis, &scenes[s], cases_run.server.url, 3000,
                     &us[0][s][i]) ||
                 hand_overs(redis, &scenes[s], far, 8000, &us[1][s][i]);
    }
    if (rc == 0)
        print_handoffs(us, rtt_us);
    delay_stop(&delay);
    if (redis)
        redisFree(redis);
    return rc ? -1 : 0;
}

/* ----------------------------------------------------------------- a death */

enum { DEATH_TTL_MS = 500 };

/* The time before its acquire, or 0 if that failed. It kills itself. */
static pid_t start_victim(
    const struct lock_kind *kind, _Atomic uint64_t *asked_ns)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    nxl_client *client = case_client(cases_run.server.url);
    nxl_lock *lock = case_lock(client, CASE_NAME, kind, DEATH_TTL_MS);
    uint64_t asked = bench_now_ns();

    srandom((unsigned)getpid());
    if (nxl_lock_acquire(lock, 0) != NXL_OK)
        _exit(1);
    *asked_ns = asked;
    pause_us(random() % 200000);
    kill(getpid(), SIGKILL);
    _exit(1);
}

/* How much later than the end of the lease the next one was granted the lock,
 * in ms: counted from before the request for it. */
static int one_death(const struct scene *scene, double *late_ms)
{
    static _Atomic uint64_t *asked_ns;
    nxl_client *client = case_client(cases_run.server.url);
    int rc = 0;

    if (!asked_ns)
        asked_ns = mmap(NULL, sizeof(*asked_ns), PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *asked_ns = 0;
    for (int i = 0; i < scene->others; i++)
        rc |= nxl_lock_acquire(
            case_lock(client, CASE_NAME, &scene->holder, 30000), 0);
    pid_t pid = start_victim(&scene->holder, asked_ns);
    nxl_lock *waiter = case_lock(client, CASE_NAME, &scene->waiter, 30000);

    while (*asked_ns == 0 && waitpid(pid, NULL, WNOHANG) == 0)
        pause_us(100);
    if (rc || *asked_ns == 0 || nxl_lock_acquire(waiter, 20000) != NXL_OK)
        return case_fail("%s: %s", scene->words, nxl_lock_errmsg(waiter));
    *late_ms =
        (double)(int64_t)(bench_now_ns() - *asked_ns) / 1e6 - DEATH_TTL_MS;
    waitpid(pid, NULL, 0);
    nxl_client_free(client);
    case_remove_keys();
    return 0;
}

int case_death(void)
{
    static double late_ms[BENCH_MAX_ROUNDS];
    char what[100];

    for (int s = 0; s < SCENES; s++) {
        double worst = 0;

        for (int i = 0; i < cases_run.rounds; i++) {
            if (one_death(&scenes[s], &late_ms[i]))
                return -1;
            worst = late_ms[i] > worst ? late_ms[i] : worst;
        }
        snprintf(what, sizeof(what), "%s: after the lease", scenes[s].words);
        case_row(what, " ms", late_ms, cases_run.rounds, 0);
        snprintf(what, sizeof(what), "%s: the latest", scenes[s].words);
        case_figure(what, " ms", worst, 0, 100);
    }
    return 0;
}

/* -------------------------------------------------------- a thousand readers
 */

enum { READERS = 1000 };

static struct crowd {
    nxl_client *client;
    nxl_lock *reader[READERS];
    unsigned granted, released;
} crowd;

static int turn(int most_ms)
{
    struct pollfd fds[8];
    nxl_event event;
    int timeout_ms;
    size_t count = nxl_client_pollfds(crowd.client, fds, 8, &timeout_ms);

    if (timeout_ms < 0 || timeout_ms > most_ms)
        timeout_ms = most_ms;
    poll(fds, (nfds_t)count, timeout_ms);
    if (nxl_client_process(crowd.client) != NXL_OK)
        return case_fail("process: %s", nxl_client_errmsg(crowd.client));
    while (nxl_client_next_event(crowd.client, &event)) {
        if (event.result != NXL_OK)
            return case_fail("%s", nxl_lock_errmsg(event.lock));
        if (event.operation == NXL_OP_ACQUIRE)
            crowd.granted++;
        else if (event.operation == NXL_OP_RELEASE)
            crowd.released++;
    }
    return 0;
}

static int turns_for(double seconds)
{
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    int rc = 0;

    while (rc == 0 && bench_now_ns() < end)
        rc = turn(10);
    return rc;
}

/* The longest script since the last call, in ms. */
static double longest_script_ms(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "SLOWLOG GET 1000");
    double longest = 0;

    for (size_t i = 0; reply && i < reply->elements; i++) {
        const redisReply *entry = reply->element[i];
        double ms =
            entry->elements > 2 ? (double)entry->element[2]->integer / 1000 : 0;
        longest = ms > longest ? ms : longest;
    }
    freeReplyObject(reply);
    freeReplyObject(redisCommand(redis, "SLOWLOG RESET"));
    return longest;
}

static int one_crowd(redisContext *redis, nxl_lock *writer, double *took_ms)
{
    uint64_t began;

    crowd.granted = crowd.released = 0;
    if (nxl_lock_acquire(writer, 5000) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(writer));
    for (int i = 0; i < READERS; i++) {
        if (nxl_lock_acquire_start(crowd.reader[i], NXL_FOREVER) != NXL_PENDING)
            return case_fail("%s", nxl_lock_errmsg(crowd.reader[i]));
    }
    for (int i = 0; case_ask(redis, "ZCARD " CASE_LINE) < READERS; i++) {
        if (i > 2000 || turn(10))
            return case_fail("not all of them joined the line");
    }
    if (turns_for(1))
        return -1;
    (void)longest_script_ms(redis);
    began = bench_now_ns();
    if (nxl_lock_release(writer) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(writer));
    while (crowd.granted < READERS) {
        if (turn(1000))
            return -1;
    }
    *took_ms = (double)(bench_now_ns() - began) / 1e6;
    return 0;
}

static int release_all(void)
{
    for (int i = 0; i < READERS; i++) {
        if (nxl_lock_release_start(crowd.reader[i]) != NXL_PENDING)
            return case_fail("%s", nxl_lock_errmsg(crowd.reader[i]));
    }
    while (crowd.released < READERS) {
        if (turn(1000))
            return -1;
    }
    return 0;
}

int case_readers(void)
{
    static const struct lock_kind exclusive = EXCLUSIVE, reader = READER;
    static double took_ms[BENCH_MAX_ROUNDS], script_ms[BENCH_MAX_ROUNDS];
    redisContext *redis = case_connect();
    nxl_client *other = case_client(cases_run.server.url);
    nxl_lock *writer = case_lock(other, CASE_NAME, &exclusive, 30000);
    int rc = redis ? 0 : -1;
    double worst = 0;

    crowd.client = case_client(cases_run.server.url);
    for (int i = 0; i < READERS; i++)
        crowd.reader[i] = case_lock(crowd.client, CASE_NAME, &reader, 30000);
    if (rc == 0) {
        freeReplyObject(
            redisCommand(redis, "CONFIG SET slowlog-log-slower-than 200"));
        freeReplyObject(redisCommand(redis, "CONFIG SET slowlog-max-len 1000"));
    }
    for (int i = 0; rc == 0 && i < cases_run.rounds; i++) {
        rc = one_crowd(redis, writer, &took_ms[i]);
        script_ms[i] = rc ? 0 : longest_script_ms(redis);
        worst = script_ms[i] > worst ? script_ms[i] : worst;
        rc = rc ? rc : release_all();
    }
    if (rc == 0) {
        case_row(
            "until all 1000 have it", " ms", took_ms, cases_run.rounds, 20);
        case_row("the longest script", " ms", script_ms, cases_run.rounds, 2);
        case_figure("the longest of all", " ms", worst, 0, 0);
    }
    nxl_client_free(crowd.client);
    nxl_client_free(other);
    if (redis)
        redisFree(redis);
    return rc;
}
