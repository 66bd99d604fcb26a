/* SPDX-License-Identifier: MIT */
/* How long a command has to wait for servers in quarantine. */
#include "cli/run/quarantine.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/clock.h"
#include "cli/report/duration.h"

/* The next process may find out a little less about the age of a promotion than
 * this one knows, and has to connect first. */
#define MARGIN_S 5
#define UNKNOWN_MS INT64_MAX

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* When the server grants locks, as far as that only takes time. */
static int64_t grants_in_ms(nxl_client *client, size_t server)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    if (nxl_client_server_facts(client, server, &facts) != NXL_OK ||
        facts.state == NXL_SERVER_DOWN)
        return UNKNOWN_MS;
    if (facts.quarantine_ms > 0)
        return facts.quarantine_ms;
    return facts.votes && facts.state == NXL_SERVER_UP ? 0 : UNKNOWN_MS;
}

/* When a majority of the servers grants locks. */
static int64_t majority_in_ms(nxl_client *client)
{
    int64_t in_ms[NXL_SERVERS_MAX];
    size_t count = nxl_client_servers(client);

    for (size_t i = 0; i < count; i++)
        in_ms[i] = grants_in_ms(client, i);
    qsort(in_ms, count, sizeof(in_ms[0]), compare);
    return count > 0 ? in_ms[count / 2] : UNKNOWN_MS;
}

/* A record is looked at or changed at once, though a default of the machine may
 * give a time to wait. */
static bool may_wait_longer(const struct args *args)
{
    return args->wait_ms != NXL_FOREVER &&
           !(args->command == CMD_ONCE && !args->child);
}

const char *quarantine_advice(char out[QUARANTINE_WORDS],
    const struct args *args, nxl_client *client, int result)
{
    int64_t given_ms = args->wait_ms;
    char text[DURATION_ROOM];

    out[0] = '\0';
    if (result != NXL_E_REFUSED || !may_wait_longer(args))
        return out;
    int64_t left_ms = majority_in_ms(client);
    if (left_ms <= 0 || left_ms == UNKNOWN_MS)
        return out;
    int64_t wait_ms =
        ((left_ms + MS_PER_S - 1) / MS_PER_S + MARGIN_S) * MS_PER_S;
    if (given_ms < wait_ms)
        snprintf(out, QUARANTINE_WORDS, "; -w %s would wait for that",
            duration_text(text, wait_ms));
    return out;
}
