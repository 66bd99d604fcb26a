/* SPDX-License-Identifier: MIT */
/*
 * Why a command could not be started, and what to write instead.
 */
#ifndef NXLOCK_CLI_RUN_EXPLAIN_H
#define NXLOCK_CLI_RUN_EXPLAIN_H

#include "cli/args.h"

/* Reports that no process could be created, because of error (an errno).
 * Returns the exit code. */
int explain_no_process(int error);

/* Reports that the command could not be executed, because of error. */
void explain_not_run(const struct args *args, char *const *words, int error);

#endif
