/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each returns the exit code, having said why unless it is 0.
 */
#ifndef NXLOCK_CLI_COMMANDS_H
#define NXLOCK_CLI_COMMANDS_H

#include "cli/args.h"
#include "cli/session.h"

int command_run(const struct args *args);
int command_acquire(const struct args *args);
int command_renew(const struct args *args);
int command_release(const struct args *args);
int command_status(const struct args *args);
int command_wait(const struct args *args);
int command_list(const struct args *args);
int command_unlock(const struct args *args);
int command_doctor(const struct args *args);

/* Acquires. False: not held, and *code is the exit code; why not has been
 * said if it is to be said. */
bool acquire_for(struct session *session, int *code);

#endif
