/* SPDX-License-Identifier: MIT */
/*
 * A model server beside a real one, for tests that do the same at both and
 * compare what came of it: a message at the model, and at the real one the verb
 * for which it stands, which src/wire carries out. What took too long cannot be
 * compared, and does not count.
 *
 * Invariant: after move_clock() both have the same time of day.
 */
#ifndef NXLOCK_TESTS_SIM_HONEST_RIG_H
#define NXLOCK_TESTS_SIM_HONEST_RIG_H

#define TEST_TIMEOUT_S 280 /* all steps, on a busy machine */
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <time.h>

#include "sim/world.h"
#include "support/redis.h"
#include "support/verb.h"

static struct redis server;
static struct world world;
static struct model_server *model;
static redisContext *context;
static struct backoff dice;
static struct dialect dialect;
static struct exchange exchange; /* the last one; outcomes point into it */

static inline unsigned draw(unsigned limit)
{
    return (unsigned)backoff_random(&dice, limit);
}

static inline void move_clock(void)
{
    struct timespec now;
    do {
        world.now = test_now_ns();
        clock_gettime(CLOCK_REALTIME, &now);
    } while (test_now_ns() - world.now > MS / 10); /* at different times */
    model->clock_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    model->clock_at = world.now;
}

static inline redisContext *connected(void)
{
    redisContext *c = redisConnectUnix(strchr(server.unix_url, '/') + 2);
    assert_true(c && !c->err);
    return c;
}

/* The text of a token, but for its share: so long, and a zero byte. */
#define TOKEN_TEXT 37
static inline void write_token(char text[TOKEN_TEXT], uint64_t token)
{
    sprintf(text, "00000000-0000-4000-8000-%012llu",
        (unsigned long long)token % 1000000000000);
}

static inline uint64_t token_of(const char *text)
{
    return strtoull(text + 24, NULL, 10);
}

static inline struct verb verb_of(
    const struct message *m, const char *key, const char *token)
{
    return (struct verb){.kind = message_verb(m->kind),
        .key = slice_of(key),
        .token = slice_of(token),
        .ttl_ms = m->ttl_ms,
        .want_left = m->want_left,
        .may_wait = m->may_wait,
        .asks_kind = m->asks_kind,
        .test_listener = m->test,
        .has_waiters_behind = m->followed,
        .window = m->window};
}

static inline struct outcome ask_real(const struct verb *verb)
{
    return verb_send(context, &dialect, verb, &exchange);
}

static inline bool is_near(int64_t one, int64_t other, int64_t slack)
{
    return one - other <= slack && other - one <= slack;
}

/* Has it ended, or will it end, in so many ms? */
static inline bool ends_soon(int64_t until_ms, int64_t slack_us)
{
    int64_t left_us = until_ms * 1000 - server_clock_us(&world, model);
    return left_us > -slack_us && left_us < 2 * slack_us;
}

/* What the model answers without a time, the real one may answer with. */
static inline void assert_same_outcome(
    const struct message *m, const struct outcome *real, int64_t slack_ms)
{
    const struct outcome *o = &m->outcome;
    if (real->kind != o->kind || real->found != o->found ||
        real->ahead != o->ahead || real->no_listener != o->no_listener ||
        real->several_holders != o->several_holders ||
        (o->left_ms >= 0 && !is_near(real->left_ms, o->left_ms, slack_ms)))
        fail_msg("%s of n%u t%llu, ttl %u: the model says %d, found %d, left "
                 "%lld, ahead %u, no listener %d, several %d; the server %d, "
                 "%d, %lld, %u, %d, %d %.*s",
            message_name(m->kind), m->name, (unsigned long long)m->token,
            m->ttl_ms, (int)o->kind, (int)o->found, (long long)o->left_ms,
            o->ahead, o->no_listener, o->several_holders, (int)real->kind,
            (int)real->found, (long long)real->left_ms, real->ahead,
            real->no_listener, real->several_holders, (int)real->text.len,
            real->text.data ? real->text.data : "");
}

/* So many random steps that could be compared. After one that could not, both
 * servers are emptied. */
static inline void honest_play(
    unsigned steps, bool (*step)(unsigned i), void (*forget_all)(void))
{
    unsigned compared = 0, all = 0;
    const char *seed = getenv("NXLOCK_SEED");
    backoff_init(&dice, 1, 1, seed ? strtoull(seed, NULL, 10) : 1);
    for (; compared < steps; all++) {
        if (step(all))
            compared++;
        else
            forget_all();
    }
    print_message("%u steps compared, %u left out\n", compared, all - compared);
}

static inline void forget_data(void)
{
    freeReplyObject(redis_command(&server, "FLUSHALL", NULL));
    model->data = (struct data){0};
}

/* Starts both, with so many tokens that nobody has. -1: there is no real one.
 */
static inline int honest_begin(unsigned tokens)
{
    if (redis_start(&server, "--save", "", NULL) != 0)
        return -1;
    context = connected();
    dialect.max_ttl_ms = 60000;
    dialect_begin(&dialect);
    world.options = (struct options)OPTIONS_INIT;
    world.options.checked = 0;
    world.setting.drift_ppm = 10000;
    backoff_init(&world.dice, 1, 1, 1);
    checker_start(&world);
    struct worker nobody = {.process = &world.process[0]};
    for (unsigned i = 1; i <= tokens; i++)
        checker_token(&world, &nobody);
    model = world.server = calloc(1, sizeof(*model));
    assert_non_null(model);
    server_start(&world, model, 0);
    move_clock();
    return 0;
}

static inline int honest_finish(void **state)
{
    (void)state;
    redisFree(context);
    exchange_free(&exchange);
    if (model) { /* without a real one there is none */
        server_end(&world, model);
        checker_end(&world);
        timers_free(&world.timers);
        free(model);
    }
    redis_stop(&server);
    return 0;
}

#endif
