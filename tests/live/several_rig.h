/* SPDX-License-Identifier: MIT */
/* Handles of three names, of each kind of lock, and what is on the server. */
#ifndef NXLOCK_TESTS_LIVE_SEVERAL_RIG_H
#define NXLOCK_TESTS_LIVE_SEVERAL_RIG_H

#include "live/live_rig.h"

#include <poll.h>
#include <stdatomic.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define await(condition)                                                       \
    do {                                                                       \
        int64_t await_end = test_now_ms() + 10000;                             \
        while (!(condition)) {                                                 \
            if (test_now_ms() > await_end)                                     \
                fail_msg("in vain: %s", #condition);                           \
            usleep(1000);                                                      \
        }                                                                      \
    } while (0)

/* As given; sorted: alpha, beta, gamma. */
static const char *const three[] = {"gamma", "alpha", "beta"};
static const char *const sorted[] = {"alpha", "beta", "gamma"};

static inline nxl_lock *several(nxl_client *client, const char *const *names,
    size_t count, const nxl_lock_options *options)
{
    nxl_lock *lock;
    live_assert_result(
        nxl_lock_new_many(&lock, client, names, NULL, count, options), NXL_OK,
        nxl_client_errmsg(client), __FILE__, __LINE__);
    return lock;
}

#define three_with(client, ...) several(client, three, 3, &OPTIONS(__VA_ARGS__))

static inline bool exists(const char *key)
{
    return redis_exists(&server, key);
}

static inline unsigned held_keys(void)
{
    return (unsigned)exists("alpha") + exists("beta") + exists("gamma");
}

static inline bool in_line(const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "{%s}:nxl-l", name);
    return redis_run(&server, "ZCARD", key, NULL) == 1;
}

enum kind { ALONE, SHARED, PERMITS, KINDS };

static inline nxl_lock_options options_of(enum kind kind, int renew, int fence)
{
    nxl_lock_options options = OPTIONS(.ttl_ms = 20000, .renew = renew);
    options.fence = kind == PERMITS ? 0 : fence;
    options.shared = kind == SHARED;
    options.permits = kind == PERMITS ? 2 : 0;
    return options;
}

static inline void assert_all_have_the_token(
    const nxl_lock *lock, enum kind kind)
{
    for (unsigned i = 0; i < 3; i++) {
        if (kind == ALONE) {
            assert_value(sorted[i], nxl_lock_token(lock));
            continue;
        }
        redisReply *score = redis_command(
            &server, "ZSCORE", sorted[i], nxl_lock_token(lock), NULL);
        assert_int_equal(score->type, REDIS_REPLY_STRING);
        freeReplyObject(score);
    }
}

/* Nothing is left but counters and what the line keeps for a moment. */
static inline void assert_nothing_held(void)
{
    await(held_keys() == 0);
    for (unsigned i = 0; i < 3; i++)
        await(!in_line(sorted[i]));
}

#endif
