/* SPDX-License-Identifier: MIT */
/*
 * Where the URLs of the servers come from: -u, --url-file, the environment, or
 * the default.
 */
#ifndef NXLOCK_CLI_SOURCE_H
#define NXLOCK_CLI_SOURCE_H

#include "cli/args.h"

/* Fills in the URLs of args if no -u gave them. For run it also removes their
 * passwords from this process's own environment, which CMD could read in /proc.
 * 0, or an exit code after reporting what is wrong. */
int source_settle(struct args *args);

/* Do the URLs come from an enclosing 'nxlock run', which removed the passwords?
 */
bool source_is_stripped(const struct args *args);
/* Reports that, and what to do, once. */
void source_explain(void);

#endif
