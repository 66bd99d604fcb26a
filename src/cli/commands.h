/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each returns the exit code and reports the reason if it is not
 * 0.
 */
#ifndef NXLOCK_CLI_COMMANDS_H
#define NXLOCK_CLI_COMMANDS_H

#include "cli/args.h"
#include "cli/session.h"

#define COMMAND(number, name, ...) int command_##name(const struct args *args);
COMMAND_LIST
#undef COMMAND

/* Acquires the lock. False: not held, and *code is the exit code; the reason
 * has been reported, except for a busy lock without a terminal or -v. */
bool acquire_for(struct session *session, int *code);

#endif
