/* SPDX-License-Identifier: MIT */
/*
 * Why run could not start its command, and what to write instead.
 */
#ifndef NXLOCK_CLI_EXPLAIN_H
#define NXLOCK_CLI_EXPLAIN_H

#include "cli/args.h"

/* No process could be made, for the reason error. The exit code. */
int explain_no_process(int error);

/* The command could not be executed, for the reason error. */
void explain_not_run(const struct args *args, int error);

#endif
