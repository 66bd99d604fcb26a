/* SPDX-License-Identifier: MIT */
/*
 * What each server did with the key "k", in its own order (MONITOR): a SET NX
 * puts a value there when there is none, a DEL removes it. So it shows what
 * stood when an attempt arrived, which no look from outside could. Nothing
 * may expire in the meantime; tests assert that of the server's statistics.
 */
#ifndef NXLOCK_TESTS_MONITOR_RIG_H
#define NXLOCK_TESTS_MONITOR_RIG_H

#include <poll.h>

#include "live/quorum_rig.h"

enum { MONITORED = 5, TOKENS = 20000, TOKEN_TEXT = 37 };

static struct monitor {
    redisContext *context;
    char token[TOKENS][TOKEN_TEXT]; /* in the order of their SETs */
    int tokens;
    int standing;    /* index of the value that stands there, or -1 */
    double since;    /* by the server's clock, s */
    double longest;  /* that a value stood there, s */
    int standing_of; /* whose it is: the number in its label "@cN" */
    int twice;       /* a token that came again */
    int own_in_way;  /* an attempt that met an earlier one of its own */
    int refused;     /* an attempt that met somebody else's */
} monitor[MONITORED];

static inline void monitors_open(void)
{
    for (int i = 0; i < MONITORED; i++) {
        struct monitor *m = &monitor[i];
        memset(m, 0, sizeof(*m));
        m->standing = -1;
        m->context = redisConnectUnix(servers[i].path);
        assert_non_null(m->context);
        redisReply *reply = redisCommand(m->context, "MONITOR");
        assert_non_null(reply);
        assert_string_equal(reply->str, "OK");
        freeReplyObject(reply);
    }
}

static inline void monitors_close(void)
{
    for (int i = 0; i < MONITORED; i++) {
        if (monitor[i].context)
            redisFree(monitor[i].context);
        monitor[i].context = NULL;
    }
}

static inline void monitor_set(struct monitor *m, const char *value, double at)
{
    const char *label = strstr(value, "@c");
    assert_non_null(label);
    int who = (int)strtol(label + 2, NULL, 10);
    assert_true(m->tokens < TOKENS);
    for (int i = 0; i < m->tokens; i++)
        m->twice += memcmp(m->token[i], value, TOKEN_TEXT - 1) == 0;
    memcpy(m->token[m->tokens], value, TOKEN_TEXT - 1);
    if (m->standing < 0) {
        m->standing = m->tokens;
        m->standing_of = who;
        m->since = at;
    } else if (m->standing_of == who) {
        m->own_in_way++;
    } else {
        m->refused++;
    }
    m->tokens++;
}

static inline void monitor_line(struct monitor *m, const char *line)
{
    static const char set[] = "\"SET\" \"k\" \"", del[] = "\"DEL\" \"k\"";
    double at = strtod(line, NULL);
    const char *found = strstr(line, set);
    if (found) {
        monitor_set(m, found + sizeof(set) - 1, at);
    } else if (strstr(line, del)) {
        assert_true(m->standing >= 0); /* it is compared before */
        m->standing = -1;
        if (at - m->since > m->longest)
            m->longest = at - m->since;
    }
}

/* Takes in what has come. */
static inline void monitors_read(void)
{
    for (int i = 0; i < MONITORED; i++) {
        struct monitor *m = &monitor[i];
        struct pollfd fd = {m->context->fd, POLLIN, 0};
        void *reply = NULL;
        while (poll(&fd, 1, 0) > 0) {
            assert_int_equal(redisBufferRead(m->context), REDIS_OK);
            while (redisGetReplyFromReader(m->context, &reply) == REDIS_OK &&
                   reply) {
                monitor_line(m, ((redisReply *)reply)->str);
                freeReplyObject(reply);
            }
        }
    }
}

/* Everything up to now has been taken in: an ECHO of the fixture's comes by. */
static inline void monitors_catch_up(void)
{
    for (int i = 0; i < MONITORED; i++)
        redis_run(&servers[i], "ECHO", "here", NULL);
    for (int i = 0; i < 10; i++) {
        test_pause_ms(1);
        monitors_read();
    }
}

#endif
