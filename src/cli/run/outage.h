/* SPDX-License-Identifier: MIT */
/* Reports, once each during a wait, that no server can decide, and that the
 * server answers again. */
#ifndef NXLOCK_CLI_RUN_OUTAGE_H
#define NXLOCK_CLI_RUN_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/run/session.h"

/* All zero before the first report. */
struct outage {
    bool reported;
    bool reported_end;
};

/* The server could not decide: result, and its words. */
void outage_began(struct outage *outage, const struct session *session,
    int result, const char *why);
/* The server answered, after waiting for waited_ms. */
void outage_ended(
    struct outage *outage, const struct args *args, int64_t waited_ms);

#endif
