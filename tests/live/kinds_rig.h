/* SPDX-License-Identifier: MIT */
/* The kinds of locks as a table, for tests that play a scene with each. */
#ifndef NXLOCK_TESTS_LIVE_KINDS_RIG_H
#define NXLOCK_TESTS_LIVE_KINDS_RIG_H

#include "live/live_rig.h"

enum { EXCLUSIVE, SHARED, PERMITS, KINDS };

/* together: how many handles are to hold it at once: as many as may, or some */
static const struct lock_kind {
    const char *name;
    int together;
    nxl_lock_options options;
} kinds[KINDS] = {
    {"exclusive", 1, {.size = sizeof(nxl_lock_options)}},
    {"shared", 4, {.size = sizeof(nxl_lock_options), .shared = 1}},
    {"permits", 4, {.size = sizeof(nxl_lock_options), .permits = 4}},
};

static inline nxl_lock *of_kind(
    nxl_client *client, int kind, int64_t ttl_ms, bool renew)
{
    nxl_lock_options options = kinds[kind].options;
    options.ttl_ms = ttl_ms;
    options.renew = renew;
    return live_lock(client, "k", &options, kinds[kind].name, kind);
}

static inline bool is_set(struct redis *r)
{
    redisReply *type = redis_command(r, "TYPE", "k", NULL);
    bool is = strcmp(type->str, "zset") == 0;
    freeReplyObject(type);
    return is;
}

/* Does the server know of the token as a holder of "k"? */
static inline bool stands(struct redis *r, const char *token)
{
    redisReply *reply = is_set(r) ? redis_command(r, "ZSCORE", "k", token, NULL)
                                  : redis_command(r, "GET", "k", NULL);
    bool found = reply->type == REDIS_REPLY_STRING &&
                 (is_set(r) || strcmp(reply->str, token) == 0);
    freeReplyObject(reply);
    return found;
}

/* How many hold "k" by that server, with those whose lease is over and whom
 * nothing has removed yet. */
static inline long long holders_at(struct redis *r)
{
    return is_set(r) ? redis_run(r, "ZCARD", "k", NULL) - 1
                     : redis_exists(r, "k");
}

static inline long long waiters_at(struct redis *r)
{
    return redis_run(r, "ZCARD", "{k}:nxl-l", NULL);
}

/* So many clients hear messages of a line. */
static inline bool are_told(struct redis *r, int clients)
{
    redisReply *all = redis_command(r, "PUBSUB", "CHANNELS", "nxl:*", NULL);
    bool are = all->elements == (size_t)clients;
    freeReplyObject(all);
    return are;
}

#endif
