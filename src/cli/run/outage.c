/* SPDX-License-Identifier: MIT */
/* A server that is down while the command waits. */
#include "cli/run/outage.h"

#include "cli/servers/connect.h"
#include "cli/report/event.h"

void outage_began(struct outage *outage, const struct session *session,
    int result, const char *why)
{
    if (outage->reported)
        return;
    outage->reported = true;
    event_report((struct event){.kind = EVENT_SERVER_DOWN, .why = why},
        "waiting for '%s': %s", session->args->shown, why);
    connect_advise(session->args, session->client, result);
}

void outage_ended(
    struct outage *outage, const struct args *args, int64_t waited_ms)
{
    if (!outage->reported || outage->reported_end)
        return;
    outage->reported_end = true;
    event_report(
        (struct event){.kind = EVENT_SERVER_UP, .waited_ms = waited_ms},
        "waiting for '%s': the server answers again", args->shown);
}
