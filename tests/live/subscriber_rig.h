/* SPDX-License-Identifier: MIT */
/* What the tests of the connection that listens share, with a real server. */
#ifndef NXLOCK_TESTS_SUBSCRIBER_RIG_H
#define NXLOCK_TESTS_SUBSCRIBER_RIG_H

#include "live/live_rig.h"

#include "model/companion.h"
#include "support/listening.h"

#define PASSWORD "Zqx7Wvk9"

static inline void open_as(const char *login, const char *parameters)
{
    char url[512];
    const char *rest = strstr(server_url, "://");
    snprintf(url, sizeof(url), "%.*s://%s%s?%s", (int)(rest - server_url),
        server_url, login, rest + 3, parameters);
    listening_open(url);
}

static inline void open_up(const char *parameters)
{
    open_as("", parameters);
    listening_want();
    listening_until(listening_is(MESSAGES_UP));
}

static inline void close_it(void)
{
    nxl_client_free(listening.client);
}

static inline const char *channel(void)
{
    static char name[CHANNEL_MAX + 1];
    if (!listening.channel)
        return "-";
    snprintf(name, sizeof(name), "%.*s", (int)listening.channel->name.len,
        listening.channel->name.data);
    return name;
}

/* Returns how many listened. */
static inline long long publish(const char *payload)
{
    return redis_run(&server, "PUBLISH", channel(), payload, NULL);
}

static inline void kill_listener(void)
{
    assert_int_equal(
        redis_run(&server, "CLIENT", "KILL", "TYPE", "pubsub", NULL), 1);
}

/* Makes the connection for commands, or uses it. */
static inline void command(void)
{
    nxl_lock *lock = new_lock(listening.client, "k", 10000);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    nxl_lock_free(lock);
}

static inline unsigned commands(void)
{
    return nodes_first(&listening.client->nodes)->server.connections;
}

#endif
