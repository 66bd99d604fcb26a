/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each returns the exit code, having said why unless it is 0.
 */
#ifndef NXLOCK_CLI_COMMANDS_H
#define NXLOCK_CLI_COMMANDS_H

#include "cli/args.h"
#include "cli/session.h"

#define COMMAND(number, name, ...) int command_##name(const struct args *args);
COMMAND_LIST
#undef COMMAND

/* Acquires. False: not held, and *code is the exit code; why not has been
 * said if it is to be said. */
bool acquire_for(struct session *session, int *code);

#endif
