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
#include "cases.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 250, ARGS = 14 };

#define RESULT "a receipt of 32 bytes, more or l"
#define TOKEN "f1005f10-0000-4000-8000-%012llx"
#define RECORD "{" CASE_NAME "}:once"

static struct floor {
    redisContext *redis, *remover;
    char begin_sha[41], tell_sha[41];
    unsigned long long tokens;
} own;

static bool is_done(redisReply *reply)
{
    bool done = reply && reply->type == REDIS_REPLY_ARRAY &&
                reply->elements >= 2 && reply->element[0]->integer == 1;

    freeReplyObject(reply);
    return done;
}

/* The two commands for one name, as the library sends them. */
static int floor_cycle(void)
{
    char token[40];

    snprintf(token, sizeof(token), TOKEN, ++own.tokens);
    const char *begin[ARGS] = {"EVALSHA", own.begin_sha, "3", CASE_NAME, RECORD,
        "{" CASE_NAME "}:f", token, BENCH_TTL, "halt", "86400000", "-",
        "172800000", "", "{" CASE_NAME "}:nxl-w"};
    const char *tell[ARGS] = {"EVALSHA", own.tell_sha, "2", CASE_NAME, RECORD,
        token, "done", "0", "86400000", "-", "0", "", "{" CASE_NAME "}:nxl-w",
        RESULT};
    if (is_done(redisCommandArgv(own.redis, ARGS, begin, NULL)) &&
        is_done(redisCommandArgv(own.redis, ARGS, tell, NULL)))
        return 0;
    return case_fail("the floor's work was not done");
}

static int lock_cycle(nxl_lock *lock)
{
    if (nxl_once_begin(lock, NULL, 0) == NXL_OK &&
        nxl_once_tell(lock, NXL_ONCE_DONE, 0, RESULT, strlen(RESULT)) == NXL_OK)
        return 0;
    return case_fail("%s", nxl_lock_errmsg(lock));
}

static int remove_record(void)
{
    return case_ask(own.remover, "DEL " RECORD) == 1
               ? 0
               : case_fail("there is no record");
}

/* Reads what the server was sent up to the next EVALSHA. */
static int next_sha(redisContext *monitor, char sha[41])
{
    static const char command[] = "\"EVALSHA\" \"";
    redisReply *reply = NULL;

    while (redisGetReply(monitor, (void **)&reply) == REDIS_OK) {
        const char *at = strstr(reply->str, command);

        if (at)
            snprintf(sha, 41, "%s", at + strlen(command));
        freeReplyObject(reply);
        if (at)
            return 0;
    }
    return case_fail("MONITOR: %s", monitor->errstr);
}

/* The floor sends the scripts that the library sends: by text the first time.
 */
static int learn_scripts(nxl_lock *lock)
{
    redisContext *monitor = case_connect();
    int rc = !monitor || lock_cycle(lock) || remove_record();

    if (rc == 0) {
        freeReplyObject(redisCommand(monitor, "MONITOR"));
        rc = lock_cycle(lock) || next_sha(monitor, own.begin_sha) ||
             next_sha(monitor, own.tell_sha) || remove_record();
    }
    if (monitor)
        redisFree(monitor);
    return rc ? -1 : 0;
}

/* Microseconds of one cycle; lock NULL: of the floor. */
static int batch(nxl_lock *lock, double *us)
{
    uint64_t took_ns = 0;

    for (int i = 0; i < BATCH; i++) {
        uint64_t before = bench_now_ns();
        int rc = lock ? lock_cycle(lock) : floor_cycle();

        took_ns += bench_now_ns() - before;
        if (rc || remove_record())
            return -1;
    }
    *us = (double)took_ns / 1000 / BATCH;
    return 0;
}

static int measure(const char *what, redisContext *redis, const char *url)
{
    static double ours[BENCH_MAX_ROUNDS], floors[BENCH_MAX_ROUNDS];
    nxl_client *client = case_client(url);
    nxl_lock *lock = case_lock(client, CASE_NAME, NULL, 30000);
    int rc;

    own.redis = redis;
    rc = learn_scripts(lock);
    /* The first round is not counted; and neither is always the second. */
    for (int i = -1; rc == 0 && i < cases_run.rounds; i++) {
        int to = i < 0 ? 0 : i;

        rc = i % 2 ? batch(NULL, &floors[to]) || batch(lock, &ours[to])
                   : batch(lock, &ours[to]) || batch(NULL, &floors[to]);
    }
    if (rc == 0)
        case_ratio(what, ours, floors, cases_run.rounds, 1.15);
    nxl_client_free(client);
    return rc ? -1 : 0;
}

int case_once(void)
{
    struct redis *server = &cases_run.server;
    redisContext *tcp = redisConnect("127.0.0.1", server->plain_port);
    redisContext *redis = case_connect();
    int rc = -1;

    own.remover = case_connect();
    case_pin(true);
    if (tcp && redis && own.remover)
        rc = measure(
                 "begin and done over TCP, to the floor", tcp, server->url) ||
             measure("begin and done over a unix socket, to the floor", redis,
                 server->unix_url);
    redisFree(tcp);
    redisFree(redis);
    redisFree(own.remover);
    return rc ? -1 : 0;
}
