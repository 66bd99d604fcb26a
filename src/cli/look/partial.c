/* SPDX-License-Identifier: MIT */
/*
 * Warns that the server is a replica, from what the client knows of it: that
 * works with an event loop too, where a server cannot be queried.
 */
#include "cli/look/partial.h"

#include <stdio.h>

#include "cli/report/report.h"

const char *partial_words(nxl_client *client, char *out)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    if (nxl_client_servers(client) > 1 ||
        nxl_client_server_facts(client, 0, &facts) != NXL_OK ||
        facts.role != NXL_ROLE_REPLICA)
        return NULL;
    snprintf(out, PARTIAL_WORDS,
        "%s is a replica, so this may be out of date; ask its primary",
        facts.url);
    return out;
}

void partial_say(nxl_client *client)
{
    char words[PARTIAL_WORDS];

    if (partial_words(client, words))
        say("warning: %s", words);
}
