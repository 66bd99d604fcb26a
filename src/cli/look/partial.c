/* SPDX-License-Identifier: MIT */
/*
 * Says why an answer may be incomplete or out of date, from what the client
 * knows of the server: that works with an event loop too, where a server cannot
 * be queried.
 */
#include "cli/look/partial.h"

#include <stdio.h>

#include "cli/report/report.h"

const char *partial_words(
    nxl_client *client, size_t server, bool all, char *out)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    if (nxl_client_server_facts(client, server, &facts) != NXL_OK)
        return NULL;
    bool replica = facts.role == NXL_ROLE_REPLICA;
    bool node = all && facts.cluster;
    if (!replica && !node)
        return NULL;
    snprintf(out, PARTIAL_WORDS, "%s is %s%s%s", facts.url,
        replica ? "a replica, so this may be out of date; ask its primary" : "",
        replica && node ? "; and it is " : "",
        node ? "one node of a Redis Cluster, so this is incomplete; the other "
               "nodes may have more locks"
             : "");
    return out;
}

void partial_say(nxl_client *client)
{
    char words[PARTIAL_WORDS];

    if (nxl_client_servers(client) == 1 &&
        partial_words(client, 0, false, words))
        say("warning: %s", words);
}
