/* SPDX-License-Identifier: MIT */
/*
 * Parses the command line.
 */
#ifndef NXLOCK_CLI_PARSE_H
#define NXLOCK_CLI_PARSE_H

#include "cli/args.h"

/* Parses the words after the command word. 0, or EXIT_USAGE or EXIT_INTERNAL
 * after saying why; *args must be freed in any case. */
int args_parse(struct args *args, enum command command, char **words);
void args_free(struct args *args);

#endif
