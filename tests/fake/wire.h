/* SPDX-License-Identifier: MIT */
/* A real server for the group, and a client that reaches it by a bad network
 * of its own. */
#ifndef NXLOCK_TESTS_FAKE_WIRE_H
#define NXLOCK_TESTS_FAKE_WIRE_H

#include "rig.h"

#include "support/proxy.h"
#include "support/redis.h"

static struct redis server;

static inline int start_server(void **state)
{
    (void)state;
    return redis_start(&server, NULL);
}

static inline int stop_server(void **state)
{
    (void)state;
    redis_stop(&server);
    return 0;
}

struct wire {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
};

#endif
