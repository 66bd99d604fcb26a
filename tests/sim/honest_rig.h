/* SPDX-License-Identifier: MIT */
/*
 * A model server beside a real one, for tests that do the same at both and
 * compare what came of it.
 *
 * Invariant: after move_clock() both have the same time of day.
 */
#ifndef NXLOCK_TESTS_SIM_HONEST_RIG_H
#define NXLOCK_TESTS_SIM_HONEST_RIG_H

#include "support/test.h"

#include <hiredis/hiredis.h>
#include <time.h>

#include "sim/world.h"
#include "support/redis.h"
#include "wire/script.h"

static struct redis server;
static struct world world;
static struct model_server *model;
static redisContext *context;
static struct backoff dice;

static inline unsigned draw(unsigned limit)
{
    return (unsigned)backoff_random(&dice, limit);
}

static inline void move_clock(void)
{
    struct timespec now;
    world.now = test_now_ns();
    clock_gettime(CLOCK_REALTIME, &now);
    model->clock_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    model->clock_at = world.now;
}

static inline redisContext *connected(void)
{
    redisContext *c = redisConnectUnix(strchr(server.unix_url, '/') + 2);
    assert_true(c && !c->err);
    return c;
}

/* Starts both, with so many tokens that nobody has. -1: there is no real one.
 */
static inline int honest_begin(unsigned tokens)
{
    if (redis_start(&server, "--save", "", NULL) != 0)
        return -1;
    context = connected();
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
