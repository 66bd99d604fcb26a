/* SPDX-License-Identifier: MIT */
/* The group's server behind a bad network, over the group's transport. */
#ifndef NXLOCK_TESTS_PROXY_RIG_H
#define NXLOCK_TESTS_PROXY_RIG_H

#include "live/live_rig.h"
#include "support/proxy.h"

static inline nxl_client *via(struct proxy *proxy, const char *parameters)
{
    char url[LOCAL_PATH + 64];
    snprintf(url, sizeof(url), "%s?%s",
        server_url == server.url ? proxy_tcp_url(proxy) : proxy_url(proxy),
        parameters);
    return client_at(url);
}

static inline struct proxy *proxy_to_server(void)
{
    return proxy_to(&server, server_url == server.url);
}

#endif
