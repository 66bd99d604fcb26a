/* SPDX-License-Identifier: MIT */
/*
 * The environment of a command that runs under a lock.
 */
#ifndef NXLOCK_CLI_RUN_ENVIRON_H
#define NXLOCK_CLI_RUN_ENVIRON_H

#include "cli/report/date.h"
#include "cli/run/label.h"
#include "cli/run/session.h"

/* What the command of once is told about its attempt. */
struct attempt {
    int64_t number;
    int64_t doubts; /* earlier ones of which nothing is known */
    /* If there are any: when the first attempt of all began, as in RFC 3339,
     * and the label of the last one; or "". */
    char since[DATE_ROOM], by[LABEL_ROOM];
};

/* Sets the variables in this process, and the command inherits them. attempt:
 * of once, or NULL; lost_fd is the descriptor that signals a loss. It may be
 * called again, for another command. False: no memory. */
bool environ_set(
    const struct session *session, const struct attempt *attempt, int lost_fd);

#endif
