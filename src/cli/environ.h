/* SPDX-License-Identifier: MIT */
/*
 * The environment of the command that run starts.
 */
#ifndef NXLOCK_CLI_ENVIRON_H
#define NXLOCK_CLI_ENVIRON_H

#include "cli/session.h"

/* Sets the variables in this process, and the command inherits them. lost_fd is
 * the descriptor that signals a loss. False: no memory. */
bool environ_set(const struct session *session, int lost_fd);

#endif
