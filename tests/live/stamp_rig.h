/* SPDX-License-Identifier: MIT */
/* Names that are locked by times, as values that the tests write and read. */
#ifndef NXLOCK_TESTS_STAMP_RIG_H
#define NXLOCK_TESTS_STAMP_RIG_H

#include "live/proxy_rig.h"

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

#endif
