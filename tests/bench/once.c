/* SPDX-License-Identifier: MIT */
/*
 * What begin and done of work that must be done once cost above the two scripts
 * that they are made of: nxl_once_begin() and nxl_once_tell() against the same
 * scripts sent by hand over hiredis, on one processor, over TCP and over a unix
 * socket.
 *
 * Invariant: both sides do the same work at the server, in batches that take
 * turns. The record is removed after each cycle, and that is not measured.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <nxlock.h>

enum {
    BATCH = 250,
    ROUNDS = 41,
    WARM_ROUNDS = 2,
    ARGS = 14,
    GOAL_PERCENT = 115
};

#define RESULT "a receipt of 32 bytes, more or l"
#define TOKEN "f1005f10-0000-4000-8000-%012llx"

static struct server server;
static cpu_set_t one_cpu;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nxlock-bench-once: %s: %s\n", what, why);
    server_stop(&server);
    exit(1);
}

/* ------------------------------------------------------------------- floor */

/* The two commands for one name, as the library sends them. */
struct pair {
    char name[BENCH_NAME_SIZE], record[64], counter[64], mark[64];
};

struct floor {
    redisContext *redis;
    char begin_sha[41], tell_sha[41];
    struct pair pair;
    redisContext *remover;
    unsigned long long tokens;
};

static void expect_one(struct floor *f, redisReply *reply)
{
    if (!reply)
        die("floor", f->redis->errstr);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        reply->element[0]->integer != 1)
        die("floor", reply->str ? reply->str : "unexpected reply");
    freeReplyObject(reply);
}

static void floor_cycle(struct floor *f)
{
    const struct pair *pair = &f->pair;
    char token[40];
    snprintf(token, sizeof(token), TOKEN, ++f->tokens);
    const char *begin[ARGS] = {"EVALSHA", f->begin_sha, "3", pair->name,
        pair->record, pair->counter, token, BENCH_TTL, "halt", "86400000", "-",
        "172800000", "", pair->mark};
    const char *tell[ARGS] = {"EVALSHA", f->tell_sha, "2", pair->name,
        pair->record, token, "done", "0", "86400000", "-", "0", "", pair->mark,
        RESULT};
    expect_one(f, redisCommandArgv(f->redis, ARGS, begin, NULL));
    expect_one(f, redisCommandArgv(f->redis, ARGS, tell, NULL));
}

static void floor_open(struct floor *f, bool tcp)
{
    f->redis = tcp ? redisConnect(server.host, server.port)
                   : redisConnectUnix(server.unix_path);
    if (!f->redis || f->redis->err)
        die("floor", "cannot connect");
    f->remover = redisConnectUnix(server.unix_path);
    if (!f->remover || f->remover->err)
        die("floor", "cannot connect");
    bench_name(f->pair.name, 0);
    snprintf(f->pair.record, sizeof(f->pair.record), "{%s}:once", f->pair.name);
    snprintf(f->pair.counter, sizeof(f->pair.counter), "{%s}:f", f->pair.name);
    snprintf(f->pair.mark, sizeof(f->pair.mark), "{%s}:nxl-w", f->pair.name);
}

static void remove_record(struct floor *f)
{
    redisReply *reply = redisCommand(f->remover, "DEL %s", f->pair.record);
    if (!reply || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        die("DEL", "there is no record");
    freeReplyObject(reply);
}

/* ----------------------------------------------------------------- subject */

struct subject {
    nxl_client *client;
    nxl_lock *lock;
};

static void subject_cycle_once(nxl_lock *lock)
{
    if (nxl_once_begin(lock, NULL, 0) != NXL_OK ||
        nxl_once_tell(lock, NXL_ONCE_DONE, 0, RESULT, strlen(RESULT)) != NXL_OK)
        die("nxlock", nxl_lock_errmsg(lock));
}

static void subject_open(struct subject *s, bool tcp)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    char name[BENCH_NAME_SIZE];
    options.ttl_ms = strtol(BENCH_TTL, NULL, 10);
    if (nxl_client_new(
            &s->client, tcp ? server.tcp_url : server.unix_url, NULL) != NXL_OK)
        die("nxlock", "no client");
    bench_name(name, 0);
    if (nxl_lock_new(&s->lock, s->client, name, &options) != NXL_OK)
        die("nxlock", nxl_client_errmsg(s->client));
}

static void subject_close(struct subject *s)
{
    nxl_lock_free(s->lock);
    nxl_client_free(s->client);
}

/* Reads what the server was sent up to the next EVALSHA. */
static void next_sha(redisContext *monitor, char sha[41])
{
    static const char command[] = "\"EVALSHA\" \"";
    for (;;) {
        void *reply = NULL;
        if (redisGetReply(monitor, &reply) != REDIS_OK)
            die("MONITOR", monitor->errstr);
        const char *at = strstr(((redisReply *)reply)->str, command);
        if (at)
            snprintf(sha, 41, "%s", at + strlen(command));
        freeReplyObject(reply);
        if (at)
            return;
    }
}

/* The floor sends the scripts that the library sends. */
static void learn_scripts(struct floor *f, const struct subject *s)
{
    redisContext *monitor = redisConnectUnix(server.unix_path);
    subject_cycle_once(s->lock); /* by text, where they are not loaded */
    remove_record(f);
    if (!monitor || monitor->err)
        die("MONITOR", "cannot connect");
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    subject_cycle_once(s->lock);
    next_sha(monitor, f->begin_sha);
    next_sha(monitor, f->tell_sha);
    redisFree(monitor);
    remove_record(f);
}

/* ------------------------------------------------------------------ rounds */

/* Microseconds of one cycle; subject NULL: of the floor. */
static double batch(struct floor *f, const struct subject *s)
{
    uint64_t took_ns = 0;
    for (int i = 0; i < BATCH; i++) {
        uint64_t before = bench_now_ns();
        if (s)
            subject_cycle_once(s->lock);
        else
            floor_cycle(f);
        took_ns += bench_now_ns() - before;
        remove_record(f);
    }
    return (double)took_ns / 1000 / BATCH;
}

static bool measure(bool tcp)
{
    static struct floor floor;
    static struct subject subject;
    double floors[ROUNDS], ours[ROUNDS], ratios[ROUNDS];
    floor_open(&floor, tcp);
    subject_open(&subject, tcp);
    learn_scripts(&floor, &subject);
    for (int i = 0; i < WARM_ROUNDS; i++) {
        batch(&floor, NULL);
        batch(&floor, &subject);
    }
    for (int i = 0; i < ROUNDS; i++) {
        bool first = i % 2 == 0; /* neither is always the second */
        if (first)
            floors[i] = batch(&floor, NULL);
        ours[i] = batch(&floor, &subject);
        if (!first)
            floors[i] = batch(&floor, NULL);
        ratios[i] = ours[i] / floors[i];
    }
    double ratio = median_of(ratios, ROUNDS);
    printf("begin and done, %-4s  floor %6.1f us   nxlock %6.1f us   "
           "ratio %.3f  (at most %.2f) %s\n",
        tcp ? "TCP" : "unix", median_of(floors, ROUNDS),
        median_of(ours, ROUNDS), ratio, GOAL_PERCENT / 100.0,
        ratio * 100 <= GOAL_PERCENT ? "met" : "NOT MET");
    subject_close(&subject);
    redisFree(floor.redis);
    redisFree(floor.remover);
    return ratio * 100 <= GOAL_PERCENT;
}

int main(int argc, char **argv)
{
    const char *program = argc > 1 ? argv[1] : "redis-server";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (server_start(&server, program, NULL) < 0)
        die(program, "does not start");
    CPU_ZERO(&one_cpu);
    CPU_SET(0, &one_cpu);
    sched_setaffinity(0, sizeof(one_cpu), &one_cpu);
    server_place(&server, &one_cpu);
    measure(true);
    measure(false);
    server_stop(&server);
    return 0;
}
