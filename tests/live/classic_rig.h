/* SPDX-License-Identifier: MIT */
/*
 * Another program of the published scheme, SETNX and GETSET of the unix time
 * in whole seconds at which its lock is over, on the name "k": told by its own
 * clock, released by a plain DEL well inside its own time.
 */
#ifndef NXLOCK_TESTS_CLASSIC_RIG_H
#define NXLOCK_TESTS_CLASSIC_RIG_H

#include "live/stamp_rig.h"

#include <time.h>

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
