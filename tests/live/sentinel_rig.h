/* SPDX-License-Identifier: MIT */
/* A primary (server of live_rig.h), a replica, and three Sentinels. */
#ifndef NXLOCK_TESTS_LIVE_SENTINEL_RIG_H
#define NXLOCK_TESTS_LIVE_SENTINEL_RIG_H

#include "live_rig.h"

enum { SENTINELS = 3 };

static struct redis replica, sentinels[SENTINELS];

/* All at one port, so that they can be the addresses of one name. */
static const char *const addresses[SENTINELS] = {
    "127.0.0.1", "127.0.0.2", "127.0.0.3"};

static inline bool sentinels_know_each_other(void)
{
    for (int i = 0; i < SENTINELS; i++) {
        redisReply *info =
            redis_command(&sentinels[i], "INFO", "sentinel", NULL);
        bool all = strstr(info->str, "slaves=1,sentinels=3") != NULL;
        freeReplyObject(info);
        if (!all)
            return false;
    }
    return true;
}

/* Returns when the primary has run for at least age_s seconds. */
static inline int sentinels_start(int age_s)
{
    char port[8];
    if (redis_start(&server, NULL) != 0)
        return -1;
    snprintf(port, sizeof(port), "%u", (unsigned)server.plain_port);
    if (redis_start(&replica, "--slaveof", "127.0.0.1", port, NULL) != 0)
        return -1;
    for (int i = 0; i < SENTINELS; i++)
        if (redis_start_sentinel(&sentinels[i], server.plain_port, addresses[i],
                i > 0 ? sentinels[0].plain_port : 0) != 0)
            return -1;
    assert_eventually(sentinels_know_each_other());
    while (server_number(&server, "server", "uptime_in_seconds") < age_s)
        test_pause_ms(20);
    return 0;
}

static inline int sentinels_stop(void **state)
{
    for (int i = 0; i < SENTINELS; i++)
        redis_stop(&sentinels[i]);
    redis_stop(&replica);
    return live_stop(state);
}

/* The beginning of a URL, with the first count Sentinels. */
static inline void sentinels_url(char *url, size_t size, int count)
{
    snprintf(url, size, "redis+sentinel://");
    for (int i = 0; i < count; i++)
        snprintf(url + strlen(url), size - strlen(url), "%s%s:%u",
            i > 0 ? "," : "", addresses[i], (unsigned)sentinels[0].plain_port);
}

static inline bool names(struct redis *sentinel, uint16_t port)
{
    char digits[8];
    snprintf(digits, sizeof(digits), "%u", (unsigned)port);
    redisReply *reply = redis_command(
        sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "svc", NULL);
    bool does = reply->type == REDIS_REPLY_ARRAY &&
                strcmp(reply->element[1]->str, digits) == 0;
    freeReplyObject(reply);
    return does;
}

/* A majority of the Sentinels names the server at this port. */
static inline bool is_named(uint16_t port)
{
    int naming = 0;
    for (int i = 0; i < SENTINELS; i++)
        naming += names(&sentinels[i], port);
    return naming > SENTINELS / 2;
}

#endif
