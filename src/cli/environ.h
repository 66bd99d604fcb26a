/* SPDX-License-Identifier: MIT */
/*
 * What the command of run finds in its environment.
 */
#ifndef NXLOCK_CLI_ENVIRON_H
#define NXLOCK_CLI_ENVIRON_H

#include "cli/session.h"

/* Sets the variables in this process, for the command to inherit. lost_fd is
 * the descriptor that tells of a loss. False: no memory. */
bool environ_set(const struct session *session, int lost_fd);

#endif
