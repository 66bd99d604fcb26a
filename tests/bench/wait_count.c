/* SPDX-License-Identifier: MIT */
/* What is learned from the server itself: the requests it receives, its
 * processor time, the round trip. Requests are counted with MONITOR, after the
 * window: INFO commandstats does not tell what clients send from what scripts
 * call, nor one script from another. */
#include "wait.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>

#define WORDS 12
#define WORD_SIZE 64

static redisContext *connect_to(int port)
{
    redisContext *redis = redisConnect("127.0.0.1", port);

    if (redis && redis->err) {
        redisFree(redis);
        redis = NULL;
    }
    return redis;
}

/* The quoted words of a line of MONITOR, each cut to size. */
static size_t words_of(const char *line, char words[WORDS][WORD_SIZE])
{
    size_t count = 0;

    while (count < WORDS && (line = strchr(line, '"'))) {
        size_t length = 0;

        for (line++; *line && *line != '"'; line++) {
            if (*line == '\\' && line[1])
                line++;
            if (length < WORD_SIZE - 1)
                words[count][length++] = *line;
        }
        words[count++][length] = '\0';
        line += *line == '"';
    }
    return count;
}

/* The script of the line has four keys (words[3] to words[6]), the second is
 * the line itself, and its fifth argument, words[JOINS], is 1 when the token
 * joins and 0 when it stays. */
#define JOINS 11
static bool is_line(char words[WORDS][WORD_SIZE], size_t count)
{
    static const char end[] = ":nxl-l";
    size_t length = count > JOINS ? strlen(words[4]) : 0;

    return length >= sizeof(end) && strcmp(words[2], "4") == 0 &&
           strcmp(words[4] + length - (sizeof(end) - 1), end) == 0;
}

static void count_line(const char *line, struct wait_requests *requests)
{
    char words[WORDS][WORD_SIZE];
    size_t count;

    if (strstr(line, " lua] "))
        return; /* by a script */
    count = words_of(line, words);
    if (count == 0)
        return;
    if (strncasecmp(words[0], "eval", 4) == 0) {
        if (!is_line(words, count))
            requests->script++;
        else if (strcmp(words[JOINS], "1") == 0)
            requests->join++;
        else
            requests->stay++;
    } else if (strcasecmp(words[0], "set") == 0) {
        requests->set++;
    } else if (strcasecmp(words[0], "pttl") == 0) {
        requests->pttl++;
    } else {
        requests->other++;
    }
}

static int read_lines(
    redisContext *redis, uint64_t end_ns, struct wait_requests *requests)
{
    redisReply *reply;

    redis->flags &= ~REDIS_BLOCK;
    while (bench_now_ns() < end_ns) {
        struct pollfd fd = {.fd = redis->fd, .events = POLLIN};

        if (poll(&fd, 1, 10) > 0 && redisBufferRead(redis) != REDIS_OK)
            return -1;
        for (;;) {
            reply = NULL;
            if (redisGetReplyFromReader(redis, (void **)&reply) != REDIS_OK)
                return -1;
            if (!reply)
                break;
            if (reply->type == REDIS_REPLY_STATUS)
                count_line(reply->str, requests);
            freeReplyObject(reply);
        }
    }
    return 0;
}

int wait_count_requests(int port, double seconds, struct wait_shared *shared,
    struct wait_requests *requests)
{
    redisContext *redis = connect_to(port);
    redisReply *reply = redis ? redisCommand(redis, "MONITOR") : NULL;
    int rc = -1;

    memset(requests, 0, sizeof(*requests));
    if (reply && reply->type == REDIS_REPLY_STATUS) {
        uint64_t before = shared->total;
        uint64_t begin = bench_now_ns();

        rc = read_lines(redis, begin + (uint64_t)(seconds * 1e9), requests);
        requests->acquisitions = shared->total - before;
        requests->seconds = (double)(bench_now_ns() - begin) / 1e9;
    }
    freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return rc;
}

static double info_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtod(at + strlen(key), NULL) : 0;
}

static redisReply *ask_info(int port, const char *section)
{
    redisContext *redis = connect_to(port);
    redisReply *reply = redis ? redisCommand(redis, "INFO %s", section) : NULL;

    if (redis)
        redisFree(redis);
    if (reply && reply->type == REDIS_REPLY_STRING)
        return reply;
    freeReplyObject(reply);
    return NULL;
}

double wait_server_seconds(int port)
{
    redisReply *reply = ask_info(port, "cpu");
    double seconds = -1;

    if (reply)
        seconds = info_number(reply->str, "used_cpu_sys:") +
                  info_number(reply->str, "used_cpu_user:");
    freeReplyObject(reply);
    return seconds;
}

struct wait_scripts wait_server_scripts(int port)
{
    redisReply *reply = ask_info(port, "commandstats");
    const char *at = reply ? strstr(reply->str, "cmdstat_evalsha:") : NULL;
    struct wait_scripts scripts = {0, 0};

    if (at)
        scripts = (struct wait_scripts){
            info_number(at, "calls="), info_number(at, "usec=")};
    freeReplyObject(reply);
    return scripts;
}

/* The lock, the floor's list, and the library's line with its mark and gap. */
static void keys_of(const char *name, char keys[WAIT_KEYS][64])
{
    static const char *const form[WAIT_KEYS] = {
        "%s", "{%s}:q", "{%s}:nxl-l", "{%s}:nxl-w", "{%s}:nxl-g"};

    for (int i = 0; i < WAIT_KEYS; i++)
        snprintf(keys[i], 64, form[i], name);
}

long long wait_line_length(int port, const char *name)
{
    redisContext *redis = connect_to(port);
    char keys[WAIT_KEYS][64];
    long long length = redis ? 0 : -1;

    keys_of(name, keys);
    for (int i = 1; redis && i < 3; i++) {
        redisReply *reply =
            redisCommand(redis, "%s %s", i == 1 ? "LLEN" : "ZCARD", keys[i]);

        if (reply && reply->type == REDIS_REPLY_INTEGER &&
            reply->integer > length)
            length = reply->integer;
        freeReplyObject(reply);
    }
    if (redis)
        redisFree(redis);
    return length;
}

void wait_remove_keys(int port, const char *name)
{
    redisContext *redis = connect_to(port);
    char keys[WAIT_KEYS][64];

    keys_of(name, keys);
    for (int i = 0; redis && i < WAIT_KEYS; i++)
        freeReplyObject(redisCommand(redis, "DEL %s", keys[i]));
    if (redis)
        redisFree(redis);
}

int wait_ping(int port, int count, struct histogram *histogram)
{
    redisContext *redis = connect_to(port);
    int rc = redis ? 0 : -1;

    for (int i = 0; rc == 0 && i < count; i++) {
        uint64_t before = bench_now_ns();
        redisReply *reply = redisCommand(redis, "PING");

        histogram_add(histogram, bench_now_ns() - before);
        rc = reply && reply->type == REDIS_REPLY_STATUS ? 0 : -1;
        freeReplyObject(reply);
    }
    if (redis)
        redisFree(redis);
    return rc;
}
