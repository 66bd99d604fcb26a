/* SPDX-License-Identifier: MIT */
/*
 * The timestamp scheme: values that the tests write and read, a GETSET that is
 * held up on its way, and another program that locks by the published scheme.
 */
#ifndef NXLOCK_TESTS_TIMESTAMPS_RIG_H
#define NXLOCK_TESTS_TIMESTAMPS_RIG_H

#include "live/proxy_rig.h"

#include <time.h>

#define STAMPS "scheme=timestamp"

/* The server's clock. */
static inline int64_t server_now_s(void)
{
    redisReply *reply = redis_command(&server, "TIME", NULL);
    assert_int_equal(reply->elements, 2);
    int64_t now = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return now;
}

/* A program of the scheme wrote it: whole seconds, offset from now. */
static inline void time_stands(const char *key, int64_t offset_s)
{
    char value[32];
    snprintf(
        value, sizeof(value), "%lld", (long long)server_now_s() + offset_s);
    redis_run(&server, "SET", key, value, NULL);
}

#define STAMP_VALUE 160 /* room for any in our format */

/* The whole seconds of what stands there; 0: it is not in our format. */
static inline int64_t stamp_at(const char *key)
{
    char value[STAMP_VALUE];
    char *end;
    if (!redis_get(&server, key, value, sizeof(value)))
        return 0;
    int64_t seconds = strtoll(value, &end, 10);
    return end - value == 10 && strlen(end) == 128 && strspn(end, " \t") == 128
               ? seconds
               : 0;
}

/* ------------------------------------------------- a GETSET that is held up
 */

static inline void without_watch(void)
{
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", "-watch", "-multi",
        NULL);
}

/* A step of an acquire that is stopped before its GETSET leaves. */
struct stalled {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
    struct waiter *waiter;
};

static inline void stall(
    struct stalled *s, const char *parameters, int64_t wait_ms)
{
    static struct waiter waiter;
    s->proxy = proxy_to_server();
    s->client = via(s->proxy, parameters);
    s->lock = new_lock(s->client, "k", 1000);
    redis_run(&server, "SET", "k", "1600000000", NULL);
    assert_result(nxl_lock_acquire(s->lock, 0), NXL_OK, s->lock);
    assert_result(nxl_lock_release(s->lock), NXL_OK, s->lock);
    redis_run(&server, "SET", "k", "1600000000", NULL);
    uint64_t up = proxy_bytes(s->proxy, PROXY_UP);
    uint64_t down = proxy_bytes(s->proxy, PROXY_DOWN);
    proxy_hold(s->proxy, PROXY_DOWN, true);
    waiter_start(&waiter, s->lock, wait_ms);
    assert_true(proxy_await(s->proxy, PROXY_UP, up + 100));
    assert_true(proxy_await(s->proxy, PROXY_DOWN, down + 14));
    proxy_hold(s->proxy, PROXY_UP, true);
    up = proxy_bytes(s->proxy, PROXY_UP);
    proxy_hold(s->proxy, PROXY_DOWN, false);
    assert_true(proxy_await(s->proxy, PROXY_UP, up + 80));
    s->waiter = &waiter;
}

static inline void stall_end(struct stalled *s)
{
    end(s->lock, s->client);
    proxy_stop(s->proxy);
}

/* ------------------------------------- a program of the published scheme */

/* It locks "k" by SETNX and GETSET of the unix time in whole seconds at which
 * its lock is over, and releases it by a plain DEL well before that. */

enum { CLASSIC_S = 3 };

struct classic {
    redisContext *c;
    int64_t ahead_s; /* of its clock before the server's */
    int64_t end_s;   /* of what it holds; 0: nothing */
    int64_t ttl_s;
};

static inline struct classic classic_new(void)
{
    struct classic who = {
        .c = redisConnectUnix(server.path), .ttl_s = CLASSIC_S};
    assert_non_null(who.c);
    assert_int_equal(who.c->err, 0);
    return who;
}

static inline int64_t classic_now(const struct classic *who)
{
    return (int64_t)time(NULL) + who->ahead_s;
}

/* A number as Python's int() reads it: blanks around it are skipped, and
 * anything else ends the program. */
static inline int64_t classic_int(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || end[strspn(end, " \t\n\v\f\r")] != '\0')
        _exit(5);
    return number;
}

/* Its first word is the command, the value a time or, if 0, not given. The
 * number that is answered; 0: nothing. */
static inline int64_t classic_send(
    struct classic *who, const char *command, int64_t value)
{
    redisReply *reply =
        value ? redisCommand(who->c, "%s k %lld", command, (long long)value)
              : redisCommand(who->c, "%s k", command);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        _exit(4);
    int64_t answer = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                     : reply->type == REDIS_REPLY_STRING
                         ? classic_int(reply->str)
                         : 0;
    freeReplyObject(reply);
    return answer;
}

/* It has read a time in the past: the step that decides. */
static inline bool classic_take_over(struct classic *who)
{
    int64_t end_s = classic_now(who) + who->ttl_s + 1;
    bool got = classic_send(who, "GETSET", end_s) < classic_now(who);
    if (got)
        who->end_s = end_s;
    return got;
}

/* What stands there, as it reads it. */
static inline bool classic_is_past(struct classic *who)
{
    int64_t there = classic_send(who, "GET", 0);
    return there != 0 && there < classic_now(who);
}

static inline bool classic_try(struct classic *who)
{
    int64_t end_s = classic_now(who) + who->ttl_s + 1;
    if (classic_send(who, "SETNX", end_s) == 1) {
        who->end_s = end_s;
        return true;
    }
    return classic_is_past(who) && classic_take_over(who);
}

static inline void classic_release(struct classic *who)
{
    if (classic_now(who) + 1 < who->end_s)
        classic_send(who, "DEL", 0);
    who->end_s = 0;
}

#endif
