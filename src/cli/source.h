/* SPDX-License-Identifier: MIT */
/*
 * Where the URLs of the servers come from: -u, --url-file, the environment, or
 * the default.
 */
#ifndef NXLOCK_CLI_SOURCE_H
#define NXLOCK_CLI_SOURCE_H

#include "cli/args.h"

/* Fills in the URLs of args if no -u gave them. For run it also blanks their
 * passwords in this process's own environment, which the command that it runs
 * could read in /proc. 0, or an exit code after saying what is wrong. */
int source_settle(struct args *args);

/* Are the URLs those that an enclosing 'nxlock run' passes on without their
 * passwords? */
bool source_is_stripped(const struct args *args);
/* Says so, and what to do; once. */
void source_explain(void);

#endif
