/* SPDX-License-Identifier: MIT */
/* The floor of waiting, by hand over hiredis: one connection of the process
 * for commands and one for messages. One request acquires the lock or joins
 * a list; a release hands the lock to the first in the list and publishes its
 * token. It survives no fault: a contender that dies keeps its place. */
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#define TOKEN_SIZE 40

/* KEYS: lock, list. ARGV: token, lease in ms, channel. */
static const char join_script[] =
    "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then "
    "return 1 end "
    "redis.call('rpush', KEYS[2], ARGV[3] .. ' ' .. ARGV[1]) return 0";

/* KEYS: lock, list. ARGV: token, lease in ms. */
static const char release_script[] =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local first = redis.call('lpop', KEYS[2]) "
    "if not first then return redis.call('del', KEYS[1]) end "
    "local channel, token = string.match(first, '^(%S+) (%S+)$') "
    "redis.call('set', KEYS[1], token, 'px', ARGV[2]) "
    "redis.call('publish', channel, token) return 1";

enum want { WANT_JOIN, WANT_RELEASE };

struct pending { /* a request whose reply has not come */
    unsigned contender;
    enum want want;
};

struct hand {
    uint32_t round;
    char token[TOKEN_SIZE];
};

struct floor {
    struct contest *contest;
    redisContext *commands, *messages;
    char join[41], release[41];
    char list[BENCH_NAME_SIZE + 8], channel[32], ttl[24];
    struct hand *hands;
    /* A ring, in the order of the requests. A contender has at most two: its
     * message may come before the reply to its join. */
    struct pending *pending;
    unsigned first, count;
};

static int load(struct floor *f, const char *script, char sha[41])
{
    redisReply *reply = redisCommand(f->commands, "SCRIPT LOAD %s", script);
    bool good = reply && reply->type == REDIS_REPLY_STRING && reply->len == 40;

    if (good)
        memcpy(sha, reply->str, 41);
    freeReplyObject(reply);
    return good ? 0 : contest_fail(f->contest, "floor: SCRIPT LOAD failed");
}

static int open_all(struct floor *f)
{
    struct contest *c = f->contest;
    redisReply *reply;

    snprintf(f->list, sizeof(f->list), "{%s}:q", c->name);
    snprintf(f->channel, sizeof(f->channel), "nxb:%u:%u", c->process,
        (unsigned)bench_now_ns());
    snprintf(f->ttl, sizeof(f->ttl), "%lld", (long long)c->ttl_ms);
    f->hands = calloc(c->count, sizeof(*f->hands));
    f->pending = calloc((size_t)c->count * 2, sizeof(*f->pending));
    f->commands = redisConnect("127.0.0.1", c->port);
    f->messages = redisConnect("127.0.0.1", c->port);
    if (!f->hands || !f->pending || !f->commands || f->commands->err ||
        !f->messages || f->messages->err)
        return contest_fail(c, "floor: no connection");
    if (load(f, join_script, f->join) || load(f, release_script, f->release))
        return -1;
    reply = redisCommand(f->messages, "SUBSCRIBE %s", f->channel);
    if (!reply || reply->type != REDIS_REPLY_ARRAY) {
        freeReplyObject(reply);
        return contest_fail(c, "floor: SUBSCRIBE failed");
    }
    freeReplyObject(reply);
    f->commands->flags &= ~REDIS_BLOCK;
    f->messages->flags &= ~REDIS_BLOCK;
    return 0;
}

static void send_command(
    struct floor *f, unsigned i, enum want want, const char **argv, int argc)
{
    unsigned at = (f->first + f->count++) % (f->contest->count * 2);

    f->pending[at] = (struct pending){i, want};
    redisAppendCommandArgv(f->commands, argc, argv, NULL);
}

static void send_join(struct floor *f, unsigned i)
{
    struct hand *hand = &f->hands[i];
    const char *argv[] = {"EVALSHA", f->join, "2", f->contest->name, f->list,
        hand->token, f->ttl, f->channel};

    snprintf(hand->token, sizeof(hand->token),
        "f1005f10-0000-4000-%04x-%04x%08x", f->contest->process & 0xffff,
        i & 0xffff, hand->round++);
    contest_wait(f->contest, i);
    send_command(f, i, WANT_JOIN, argv, 8);
}

static void send_release(struct floor *f, unsigned i)
{
    const char *argv[] = {"EVALSHA", f->release, "2", f->contest->name, f->list,
        f->hands[i].token, f->ttl};

    send_command(f, i, WANT_RELEASE, argv, 7);
}

static int take_answer(struct floor *f, const redisReply *reply)
{
    struct pending pending = f->pending[f->first];

    f->first = (f->first + 1) % (f->contest->count * 2);
    f->count--;
    if (reply->type != REDIS_REPLY_INTEGER)
        return contest_fail(f->contest, "floor: %.150s",
            reply->str ? reply->str : "an answer is wrong");
    if (pending.want == WANT_RELEASE) {
        if (reply->integer != 1)
            contest_failure(f->contest, "a release");
        send_join(f, pending.contender);
    } else if (reply->integer == 1) {
        contest_granted(f->contest, pending.contender);
    }
    return 0;
}

static int take_message(struct floor *f, const redisReply *reply)
{
    const char *token;
    unsigned i;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[2]->type != REDIS_REPLY_STRING)
        return contest_fail(f->contest, "floor: a message is wrong");
    token = reply->element[2]->str;
    if (sscanf(token, "f1005f10-0000-4000-%*4x-%4x", &i) != 1 ||
        i >= f->contest->count || strcmp(token, f->hands[i].token) != 0)
        return contest_fail(f->contest, "floor: a message for no contender");
    contest_granted(f->contest, i);
    return 0;
}

static int take_all(struct floor *f, redisContext *redis,
    int (*take)(struct floor *, const redisReply *))
{
    redisReply *reply;

    if (redisBufferRead(redis) != REDIS_OK)
        return contest_fail(f->contest, "floor: %.150s", redis->errstr);
    for (;;) {
        int rc;

        reply = NULL;
        if (redisGetReplyFromReader(redis, (void **)&reply) != REDIS_OK)
            return contest_fail(f->contest, "floor: %.150s", redis->errstr);
        if (!reply)
            return 0;
        rc = take(f, reply);
        freeReplyObject(reply);
        if (rc)
            return rc;
    }
}

static int turn(struct floor *f)
{
    struct pollfd fds[2] = {{.fd = f->commands->fd, .events = POLLIN},
        {.fd = f->messages->fd, .events = POLLIN}};
    struct timespec sleep;
    int done = 0;

    while (!done) {
        if (redisBufferWrite(f->commands, &done) != REDIS_OK)
            return contest_fail(
                f->contest, "floor: %.150s", f->commands->errstr);
    }
    sleep = contest_sleep(f->contest, -1);
    if (ppoll(fds, 2, &sleep, NULL) < 0 && errno != EINTR)
        return contest_fail(f->contest, "floor: poll failed");
    if (fds[0].revents && take_all(f, f->commands, take_answer))
        return -1;
    if (fds[1].revents && take_all(f, f->messages, take_message))
        return -1;
    for (int i; (i = contest_due(f->contest)) >= 0;)
        send_release(f, (unsigned)i);
    return 0;
}

/* What is left of the line at the end is removed with its keys. */
static int contend(struct floor *f)
{
    for (unsigned i = 0; i < f->contest->count; i++)
        send_join(f, i);
    f->contest->shared->ready++;
    while (!f->contest->shared->stop) {
        if (turn(f))
            return -1;
    }
    return 0;
}

int wait_floor(struct contest *contest)
{
    struct floor f = {.contest = contest};
    int rc = open_all(&f);

    if (rc == 0)
        rc = contend(&f);
    if (f.commands)
        redisFree(f.commands);
    if (f.messages)
        redisFree(f.messages);
    free(f.hands);
    free(f.pending);
    return rc;
}
