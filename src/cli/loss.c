/* SPDX-License-Identifier: MIT */
/* Reports the loss of the lock under which a command runs. */
#include "cli/loss.h"

#include "cli/event.h"

void loss_report(bool *reported, const struct session *session,
    char *const *words, const char *why, bool stops, bool logged)
{
    uint64_t held = session->granted != 0 ? nxl_now_ns() - session->granted : 0;
    struct event event = {.kind = EVENT_LOST,
        .logged = logged,
        .why = why,
        .held_ms = (int64_t)(held / NS_PER_MS)};

    if (*reported)
        return;
    *reported = true;
    event_report(event, "lost '%s': %s; %s%s", session->args->shown, why,
        stops ? "stopping " : "--on-lost warn, still running: ", words[0]);
}
