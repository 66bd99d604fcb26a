/* SPDX-License-Identifier: MIT */
/*
 * Exchanges of src/wire over a plain hiredis connection to a real server: the
 * scripts of the line without the rest of the library. One more connection
 * listens to the channel of the lock "k".
 */
#ifndef NXLOCK_TESTS_LIVE_LINE_RIG_H
#define NXLOCK_TESTS_LIVE_LINE_RIG_H

#include <stdarg.h>
#include <sys/time.h>

#include "model/companion.h"
#include "live/live_rig.h"
#include "support/verb.h"

#define CLIENT "test"
#define CHANNEL "nxl:" CLIENT ":k"
#define LEASE_MS 20000
#define WINDOW 320 /* ten seconds */

struct peer {
    redisContext *c;
    struct dialect dialect;
    uint64_t hand_over_again; /* as its lock remembers it */
    unsigned ahead;           /* replies to what was sent before a verb */
};
static struct peer peer;    /* sends the verbs */
static redisContext *ears;  /* listens */
static const char *of_lock; /* the key */

static inline redisContext *line_connect(void)
{
    redisContext *c = redisConnectUnix(server.path);
    assert_true(c && !c->err);
    struct timeval limit = {20, 0};
    redisSetTimeout(c, limit);
    return c;
}

static inline void peer_open(struct peer *p)
{
    *p = (struct peer){.c = line_connect()};
    p->dialect.max_ttl_ms = 60000;
    dialect_begin(&p->dialect);
}

static inline int line_setup(void **state)
{
    live_clean(state);
    of_lock = "k";
    peer_open(&peer);
    ears = line_connect();
    redisReply *r = redisCommand(ears, "SUBSCRIBE " CHANNEL);
    assert_int_equal(r->type, REDIS_REPLY_ARRAY);
    freeReplyObject(r);
    return 0;
}

static inline int line_teardown(void **state)
{
    redisFree(peer.c);
    redisFree(ears);
    return 0;
}

/* Carries the verb out; the outcome's text is printed if it is a fault that no
 * test expects. */
static inline struct outcome line_send(struct peer *p, const struct verb *verb)
{
    static struct exchange x;
    enum exchange_next next = EXCHANGE_AGAIN;

    exchange_free(&x);
    exchange_begin(&x, verb, NULL);
    x.hand_over_again = p->hand_over_again;
    while (next == EXCHANGE_AGAIN) {
        struct buf out = {0};
        unsigned due = exchange_encode(&x, &p->dialect, &out);
        assert_true(due > 0);
        redisAppendFormattedCommand(p->c, buf_head(&out), buf_len(&out));
        buf_free(&out);
        for (due += p->ahead; due > 0; due--) {
            redisReply *r = NULL;
            struct reply items[REPLY_ITEMS];
            assert_int_equal(redisGetReply(p->c, (void **)&r), REDIS_OK);
            if (p->ahead > 0) {
                assert_int_not_equal(r->type, REDIS_REPLY_ERROR);
                freeReplyObject(r);
                p->ahead--;
                continue;
            }
            struct reply reply = verb_reply(r, items);
            next = exchange_reply(&x, &reply);
            freeReplyObject(r);
        }
    }
    p->hand_over_again = x.hand_over_again;
    struct outcome o = x.outcome;
    o.text = o.value = (struct slice){NULL, 0};
    return o;
}

/* A verb of the line by this token, over that connection. */
static inline struct outcome line_verb(
    struct peer *p, enum verb_kind kind, const char *token, const char *client)
{
    struct verb verb = {.kind = kind,
        .key = slice_of(of_lock),
        .token = slice_of(token),
        .client = slice_of(client),
        .window = WINDOW,
        .ttl_ms = LEASE_MS};
    return line_send(p, &verb);
}

#define join(token) line_verb(&peer, VERB_JOIN, token, CLIENT)
#define stay(token) line_verb(&peer, VERB_STAY, token, CLIENT)
#define leave(token) line_verb(&peer, VERB_RELEASE, token, CLIENT)
#define release(token) line_verb(&peer, VERB_RELEASE, token, "")

#define assert_kind(got, expected) assert_int_equal((got).kind, expected)

static inline void held_by(const char *token, int64_t ttl_ms)
{
    char ms[32];
    snprintf(ms, sizeof(ms), "%lld", (long long)ttl_ms);
    redis_run(&server, "SET", of_lock, token, "PX", ms, NULL);
}

/* NULL: nobody. */
static inline void assert_holder(const char *token)
{
    char value[128];
    bool found = redis_get(&server, of_lock, value, sizeof(value));

    assert_int_equal(found, token != NULL);
    if (token)
        assert_string_equal(value, token);
}

/* The next message: this token may have the lock. */
static inline void assert_message(const char *token)
{
    redisReply *r = NULL;

    assert_int_equal(redisGetReply(ears, (void **)&r), REDIS_OK);
    assert_int_equal(r->elements, 3);
    assert_string_equal(r->element[0]->str, "message");
    assert_string_equal(r->element[2]->str, token);
    freeReplyObject(r);
}

/* Nothing was published before this. */
static inline void assert_no_message(void)
{
    redis_run(&server, "PUBLISH", CHANNEL, "end", NULL);
    assert_message("end");
}

static inline long long in_line(void)
{
    return redis_run(&server, "ZCARD", "{k}:nxl-l", NULL);
}

/* The time in ticks, by the server's clock. */
static inline uint64_t ticks_now(void)
{
    redisReply *t = redis_command(&server, "TIME", NULL);
    uint64_t now = strtoull(t->element[0]->str, NULL, 10) * 32 +
                   strtoull(t->element[1]->str, NULL, 10) / 31250;
    freeReplyObject(t);
    return now;
}

/* Adds a member with a ticket, last seen so long ago. */
__attribute__((format(printf, 3, 4))) static inline void add_member(
    unsigned ticket, unsigned ago_ticks, const char *format, ...)
{
    char score[32], member[256];
    va_list args;
    va_start(args, format);
    vsnprintf(member, sizeof(member), format, args);
    va_end(args);
    snprintf(score, sizeof(score), "%llu",
        (unsigned long long)((uint64_t)ticket << 22 |
                             ((ticks_now() - ago_ticks) & 0x3fffff)));
    redis_run(&server, "ZADD", "{k}:nxl-l", score, member, NULL);
    redis_run(&server, "SET", "{k}:nxl-w", "1", "PX", "15000", NULL);
}

static inline void add_waiter(
    const char *token, const char *client, unsigned ticket, unsigned ago_ticks)
{
    add_member(
        ticket, ago_ticks, "%s %s %d %d", token, client, LEASE_MS, WINDOW);
}

/* The score of the member of that token. */
static inline uint64_t score_of(const char *token)
{
    uint64_t score = UINT64_MAX;
    redisReply *all = redis_command(
        &server, "ZRANGE", "{k}:nxl-l", "0", "-1", "WITHSCORES", NULL);
    for (size_t i = 0; i + 1 < all->elements; i += 2)
        if (!strncmp(all->element[i]->str, token, strlen(token)) &&
            all->element[i]->str[strlen(token)] == ' ')
            score = strtoull(all->element[i + 1]->str, NULL, 10);
    freeReplyObject(all);
    return score;
}

/* Connects as a user with these rights, and no others but scripts. */
static inline void peer_as(struct peer *p, const char *rights)
{
    char line[512], *save;
    /* Redis 6.2 lets a new user have all channels. */
    const char *argv[40] = {"ACL", "SETUSER", "u", "reset", "resetchannels",
        "on", "nopass", "+eval", "+evalsha"};
    int argc = 9;

    snprintf(line, sizeof(line), "%s", rights);
    for (char *w = strtok_r(line, " ", &save); w;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    redisReply *r = redisCommandArgv(server.context, argc, argv, NULL);
    assert_int_equal(r->type, REDIS_REPLY_STATUS);
    freeReplyObject(r);
    peer_open(p);
    r = redisCommand(p->c, "AUTH u x");
    assert_int_equal(r->type, REDIS_REPLY_STATUS);
    freeReplyObject(r);
}

#endif
