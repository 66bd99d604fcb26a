/* SPDX-License-Identifier: MIT */
/* The floor of five servers: what hiredis and poll() alone reach. It keeps no
 * deadline, survives no fault and undoes nothing. Each reply is read, for the
 * next one of its connection comes behind it; nobody waits for the last two. */
#include "quorum.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#define NAME "q:floor"
#define QUORUM (QUORUM_SERVERS / 2 + 1)

static const char release_script[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) else return 0 end";

struct floor_quorum {
    redisContext *redis[QUORUM_SERVERS];
    unsigned due[QUORUM_SERVERS]; /* replies that have not come */
    uint64_t counter;
    char sha[41];
};

struct floor_quorum *floor_quorum_open(const struct server *servers)
{
    struct floor_quorum *f = calloc(1, sizeof(*f));

    for (int i = 0; f && i < QUORUM_SERVERS; i++) {
        redisReply *reply = NULL;
        f->redis[i] = redisConnectUnix(servers[i].unix_path);
        if (f->redis[i] && !f->redis[i]->err)
            reply = redisCommand(f->redis[i], "SCRIPT LOAD %s", release_script);
        if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != 40) {
            fprintf(stderr, "quorum floor: cannot connect\n");
            return NULL; /* the program ends */
        }
        memcpy(f->sha, reply->str, sizeof(f->sha));
        freeReplyObject(reply);
        f->redis[i]->flags &= ~REDIS_BLOCK;
    }
    return f;
}

void floor_quorum_close(struct floor_quorum *f)
{
    for (int i = 0; f && i < QUORUM_SERVERS; i++)
        redisFree(f->redis[i]);
    free(f);
}

/* Takes what server i has said; counts it if it was to the latest command. */
static int take(struct floor_quorum *f, int i, unsigned *votes)
{
    redisReply *reply = NULL;

    if (redisBufferRead(f->redis[i]) != REDIS_OK)
        return -1;
    for (;;) {
        if (redisGetReplyFromReader(f->redis[i], (void **)&reply) != REDIS_OK)
            return -1;
        if (!reply)
            return 0;
        bool good = reply->type == REDIS_REPLY_STATUS ||
                    (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
        freeReplyObject(reply);
        if (!good)
            return -1;
        *votes += --f->due[i] == 0;
    }
}

/* One command at all of them, until a quorum has answered. */
static int round_of(struct floor_quorum *f, int argc, const char **argv)
{
    struct pollfd fds[QUORUM_SERVERS];
    unsigned votes = 0;

    for (int i = 0; i < QUORUM_SERVERS; i++) {
        int done = 0;
        fds[i] = (struct pollfd){.fd = f->redis[i]->fd, .events = POLLIN};
        redisAppendCommandArgv(f->redis[i], argc, argv, NULL);
        if (redisBufferWrite(f->redis[i], &done) != REDIS_OK || !done)
            return -1;
        f->due[i]++;
    }
    while (votes < QUORUM) {
        if (poll(fds, QUORUM_SERVERS, -1) < 0 && errno != EINTR)
            return -1;
        for (int i = 0; i < QUORUM_SERVERS; i++)
            if (fds[i].revents && take(f, i, &votes) < 0)
                return -1;
    }
    return 0;
}

int floor_quorum_cycle(struct floor_quorum *f)
{
    char token[40];
    const char *acquire[] = {"SET", NAME, token, "NX", "PX", BENCH_TTL};
    const char *release[] = {"EVALSHA", f->sha, "1", NAME, token};

    snprintf(token, sizeof(token), "f1005f10-0000-4000-8000-%012llx",
        (unsigned long long)++f->counter);
    if (round_of(f, 6, acquire) < 0 || round_of(f, 5, release) < 0) {
        fprintf(stderr, "quorum floor: an answer is wrong\n");
        return -1;
    }
    return 0;
}
