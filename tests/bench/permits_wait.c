/* SPDX-License-Identifier: MIT */
/* How long one waits for a lock that several hold: after a release, and as one
 * of a thousand readers behind a writer. */
#include "delay.h"
#include "cases.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --------------------------------------------------------------- a release */

/* The holder releases, beside others who do not, and the waiter is next. */
static const struct scene {
    const char *words;
    struct lock_kind holder, waiter;
    int others;
} scenes[] = {
    {"exclusive", {0, 0}, {0, 0}, 0},
    {"2 of 2 permits", {2, 0}, {2, 0}, 1},
    {"64 of 64 permits", {64, 0}, {64, 0}, 63},
    {"a reader after a writer", {0, 0}, {0, 1}, 0},
    {"a writer after a reader", {0, 1}, {0, 0}, 0},
};
enum { SCENES = sizeof(scenes) / sizeof(*scenes), SAMPLES = 20 };

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
        case_pause_us(200);
    }
    case_pause_us(settle_us);
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

/* The lock, its line, and that line's mark and gap. */
static void remove_keys(void)
{
    redisContext *redis = case_connect();

    if (!redis)
        return;
    freeReplyObject(
        redisCommand(redis, "DEL %s {%s}:nxl-l {%s}:nxl-w {%s}:nxl-g",
            CASE_NAME, CASE_NAME, CASE_NAME, CASE_NAME));
    redisFree(redis);
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
    remove_keys();
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

/* -------------------------------------------------------- a thousand readers
 */

enum { READERS = 1000 };

static struct crowd {
    nxl_client *client;
    nxl_lock *reader[READERS];
    struct case_ended ended;
} crowd;

static int turns_for(double seconds)
{
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    int rc = 0;

    while (rc == 0 && bench_now_ns() < end)
        rc = case_turn(crowd.client, 10, &crowd.ended);
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

    crowd.ended = (struct case_ended){0, 0};
    if (nxl_lock_acquire(writer, 5000) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(writer));
    for (int i = 0; i < READERS; i++) {
        if (nxl_lock_acquire_start(crowd.reader[i], NXL_FOREVER) != NXL_PENDING)
            return case_fail("%s", nxl_lock_errmsg(crowd.reader[i]));
    }
    for (int i = 0; case_ask(redis, "ZCARD " CASE_LINE) < READERS; i++) {
        if (i > 2000 || case_turn(crowd.client, 10, &crowd.ended))
            return case_fail("not all of them joined the line");
    }
    if (turns_for(1))
        return -1;
    (void)longest_script_ms(redis);
    began = bench_now_ns();
    if (nxl_lock_release(writer) != NXL_OK)
        return case_fail("%s", nxl_lock_errmsg(writer));
    while (crowd.ended.acquires < READERS) {
        if (case_turn(crowd.client, 1000, &crowd.ended))
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
    while (crowd.ended.releases < READERS) {
        if (case_turn(crowd.client, 1000, &crowd.ended))
            return -1;
    }
    return 0;
}

int case_readers(void)
{
    static const struct lock_kind reader = {0, 1};
    static double took_ms[BENCH_MAX_ROUNDS], script_ms[BENCH_MAX_ROUNDS];
    redisContext *redis = case_connect();
    nxl_client *other = case_client(cases_run.server.url);
    nxl_lock *writer = case_lock(other, CASE_NAME, NULL, 30000);
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
        case_figure("the longest of all", " ms", worst, 0);
    }
    nxl_client_free(crowd.client);
    nxl_client_free(other);
    if (redis)
        redisFree(redis);
    return rc;
}
