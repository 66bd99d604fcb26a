/* SPDX-License-Identifier: MIT */
/* Whether the lock is granted in the order of the line, as MONITOR shows it:
 * what the scripts write to the line and to the key of the lock. */
#include "cases.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A script grants the lock to all of a batch by one command. */
enum { WAITERS_MAX = 64, WORDS = 4 + 2 * WAITERS_MAX, WORD_SIZE = 200 };

static struct line {
    struct waiter {
        char token[96];
        unsigned long long ticket;
    } waiters[WAITERS_MAX], left[WAITERS_MAX]; /* by the last command */
    int count, left_count;
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
            line.left[line.left_count++] = line.waiters[i];
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
    unsigned long long ticket = ULLONG_MAX;

    for (int i = 0; i < line.left_count; i++) {
        if (strcmp(line.left[i].token, token) == 0)
            ticket = line.left[i].ticket;
    }
    for (int i = 0; i < line.count; i++) {
        if (line.waiters[i].ticket < ticket)
            return true;
    }
    return false;
}

static void note_grant(const char *token, struct grants *grants)
{
    grants->all++;
    grants->out_of_order += passes_somebody(token);
}

static void note(const char *text, struct grants *grants)
{
    static char words[WORDS][WORD_SIZE];
    int count = strstr(text, " lua] ") ? words_of(text, words) : 0;
    bool in_line = count >= 3 && strcmp(words[1], CASE_LINE) == 0;
    bool holds = count >= 4 && strcmp(words[1], CASE_NAME) == 0;
    bool adds = count >= 4 && strcasecmp(words[0], "ZADD") == 0;

    if (in_line && adds) {
        add_waiter(words[2], words[3]);
    } else if (in_line && strcasecmp(words[0], "ZREM") == 0) {
        line.left_count = 0;
        for (int i = 2; i < count; i++)
            remove_waiter(words[i]);
    } else if (holds && adds) {
        for (int i = 3; i < count; i += 2) {
            if (strncmp(words[i], "nxl=", 4) != 0)
                note_grant(words[i], grants);
        }
    } else if (holds && strcasecmp(words[0], "SET") == 0) {
        note_grant(words[2], grants);
    }
}

/* Whoever is in line when this is asked, which MONITOR shows too. */
#define LOOK "return redis.call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES')"

static void learn_line(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "EVAL %s 1 " CASE_LINE, LOOK);

    line.count = line.left_count = 0;
    for (size_t i = 0; reply && i + 1 < reply->elements; i += 2)
        add_waiter(reply->element[i + 1]->str, reply->element[i]->str);
    freeReplyObject(reply);
}

static bool is_look(const char *text)
{
    return strstr(
        text, " lua] \"ZRANGE\" \"" CASE_LINE "\" \"0\" \"-1\" \"WITHSCORES\"");
}

int follow_grants(double seconds, struct grants *grants)
{
    redisContext *redis = case_connect(), *other = case_connect();
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    bool known = false;

    *grants = (struct grants){0, 0};
    if (!redis || !other)
        return -1;
    freeReplyObject(redisCommand(redis, "MONITOR"));
    learn_line(other);
    while (bench_now_ns() < end) {
        struct pollfd fd = {redis->fd, POLLIN, 0};
        redisReply *reply = NULL;

        if (poll(&fd, 1, 100) > 0 && redisBufferRead(redis) != REDIS_OK)
            return case_fail("MONITOR: %s", redis->errstr);
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
