/* SPDX-License-Identifier: MIT */
/* Reads what a client has counted. */
#include "base/clock.h"
#include "base/deadline.h"
#include "client/voters.h"
#include "client/sentinel_watch.h"
#include "lock/stats.h"

uint64_t nxl_histogram_limit_ms(size_t bucket)
{
    return stats_limit_ms(bucket);
}

int nxl_client_stats(nxl_client *client, nxl_stats *stats, size_t size)
{
    if (!client || !stats || !size)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    uint64_t at = clock_now();
    client_lock(client);
    nxl_stats now = client->stats;
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        const struct server *server = &n->server;
        now.cleanups += server->cleaned;
        now.connections += server->connections;
        now.reconnects += server->connections ? server->connections - 1 : 0;
        now.failovers += n->voter.eligibility.failovers;
        now.quarantine_ms =
            later(now.quarantine_ms, voters_quarantine_ms(n, at));
        now.unconfirmed += n->voter.unconfirmed;
    }
    if (client->sentinel_watch) {
        unsigned naming, listed;
        sentinel_watch_count(client->sentinel_watch, &naming, &listed);
        now.sentinels_naming = naming;
    }
    client_unlock(client);
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
    return NXL_OK;
}
