/* SPDX-License-Identifier: MIT */
/* Reports the loss of the lock under which a command runs. */
#include "cli/run/loss.h"

#include "cli/report/event.h"

void loss_report(bool *reported, const struct session *session,
    char *const *words, const char *why, bool stops, bool logged)
{
    struct event event = {.kind = EVENT_LOST,
        .logged = logged,
        .why = why,
        .held_ms = session->granted != 0
                       ? ms_between(session->granted, nxl_now_ns())
                       : 0};

    if (*reported)
        return;
    *reported = true;
    event_report(event, "lost '%s': %s; %s%s", session->args->shown, why,
        stops ? "stopping " : "--on-lost warn, still running: ", words[0]);
}
