/* SPDX-License-Identifier: MIT */
/* Whether the lock is granted in the order of the line, as MONITOR shows it:
 * what the scripts write to the line and to the key of the lock. */
#include "permits.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITERS_MAX = 64, WORDS = 10, WORD_SIZE = 200 };

static struct line {
    struct waiter {
        char token[96];
        unsigned long long ticket;
    } waiters[WAITERS_MAX], left; /* the last one that left */
    int count;
} line;

/* The words in quotes of a line of MONITOR. */
static int words_of(const char *text, char words[WORDS][WORD_SIZE])
{
    int count = 0;

    while (count < WORDS && (text = strchr(text, '"'))) {
        const char *end = strchr(text + 1, '"');
        size_t size = end ? (size_t)(end - text - 1) : 0;

        if (!end)
            break;
        size = size < WORD_SIZE ? size : WORD_SIZE - 1;
        memcpy(words[count], text + 1, size);
        words[count++][size] = '\0';
        text = end + 1;
    }
    return count;
}

/* A member of the line begins with its token. */
static void copy_token(char token[96], const char *member)
{
    size_t size = strcspn(member, " ");

    size = size < 95 ? size : 95;
    memcpy(token, member, size);
    token[size] = '\0';
}

static void remove_waiter(const char *member)
{
    char token[96];

    copy_token(token, member);
    for (int i = 0; i < line.count; i++) {
        if (strcmp(line.waiters[i].token, token) == 0) {
            line.left = line.waiters[i];
            line.waiters[i] = line.waiters[--line.count];
            return;
        }
    }
}

static void add_waiter(const char *score, const char *member)
{
    struct waiter *w = &line.waiters[line.count];
    unsigned long long ticket = strtoull(score, NULL, 10) >> 22;
    char token[96];

    copy_token(token, member);
    for (int i = 0; i < line.count; i++) {
        if (strcmp(line.waiters[i].token, token) == 0)
            return;
    }
    if (line.count == WAITERS_MAX)
        return;
    w->ticket = ticket;
    snprintf(w->token, sizeof(w->token), "%s", token);
    line.count++;
}

/* Is somebody in line who joined before? */
static bool passes_somebody(const char *token)
{
    bool waited = strcmp(line.left.token, token) == 0;

    for (int i = 0; i < line.count; i++) {
        if (!waited || line.waiters[i].ticket < line.left.ticket)
            return true;
    }
    return false;
}

static void note(const char *text, struct permits_grants *grants)
{
    char words[WORDS][WORD_SIZE];
    int count = strstr(text, " lua] ") ? words_of(text, words) : 0;
    bool adds = count >= 4 && strcasecmp(words[0], "ZADD") == 0;
    const char *granted = NULL;

    if (adds && strcmp(words[1], PERMITS_LINE) == 0)
        add_waiter(words[2], words[3]);
    else if (count == 3 && strcasecmp(words[0], "ZREM") == 0 &&
             strcmp(words[1], PERMITS_LINE) == 0)
        remove_waiter(words[2]);
    else if (adds && count == 6 && strcmp(words[1], PERMITS_NAME) == 0)
        granted = words[5]; /* with the head */
    else if (count == 5 && strcasecmp(words[0], "SET") == 0 &&
             strcmp(words[1], PERMITS_NAME) == 0)
        granted = words[2];
    if (!granted)
        return;
    grants->all++;
    grants->out_of_order += passes_somebody(granted);
}

/* Whoever is in line when this is asked, which MONITOR shows too. */
#define LOOK "return redis.call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES')"

static void learn_line(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "EVAL %s 1 " PERMITS_LINE, LOOK);

    line.count = 0;
    for (size_t i = 0; reply && i + 1 < reply->elements; i += 2)
        add_waiter(reply->element[i + 1]->str, reply->element[i]->str);
    freeReplyObject(reply);
}

static bool is_look(const char *text)
{
    return strstr(text,
        " lua] \"ZRANGE\" \"" PERMITS_LINE "\" \"0\" \"-1\" \"WITHSCORES\"");
}

int permits_follow(double seconds, struct permits_grants *grants)
{
    redisContext *redis = permits_connect(), *other = permits_connect();
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    bool known = false;

    *grants = (struct permits_grants){0, 0};
    if (!redis || !other)
        return -1;
    freeReplyObject(redisCommand(redis, "MONITOR"));
    learn_line(other);
    while (bench_now_ns() < end) {
        struct pollfd fd = {redis->fd, POLLIN, 0};
        redisReply *reply = NULL;

        if (poll(&fd, 1, 100) > 0 && redisBufferRead(redis) != REDIS_OK)
            return permits_fail("MONITOR: %s", redis->errstr);
        while (redisGetReplyFromReader(redis, (void **)&reply) == REDIS_OK &&
               reply) {
            if (reply->str && known)
                note(reply->str, grants);
            known = known || (reply->str && is_look(reply->str));
            freeReplyObject(reply);
            reply = NULL;
        }
    }
    redisFree(redis);
    redisFree(other);
    return 0;
}
