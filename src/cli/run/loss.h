/* SPDX-License-Identifier: MIT */
/*
 * Reports the loss of the lock under which a command runs: for nxlock and for
 * its watchdog, either of which may be the first to know.
 */
#ifndef NXLOCK_CLI_RUN_LOSS_H
#define NXLOCK_CLI_RUN_LOSS_H

#include <stdbool.h>

#include "cli/run/session.h"

/* Reports that the lock was lost for the reason why, and that words[0] is
 * now stopped, if stops. Only if it is not *reported, which becomes true.
 * logged: the other process has written it to the log. */
void loss_report(bool *reported, const struct session *session,
    char *const *words, const char *why, bool stops, bool logged);

/* The reason of a watchdog whose clock says that the lease is ending. */
#define LOSS_IS_LATE "it could not be renewed in time"

#endif
