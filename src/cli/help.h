/* SPDX-License-Identifier: MIT */
/*
 * Prints --help: the examples and the prose of the folder help, and what the
 * table says of options and exit codes.
 */
#ifndef NXLOCK_CLI_HELP_H
#define NXLOCK_CLI_HELP_H

#include <stdio.h>

#include "cli/args.h"

/* By enum command; the last one is the overview's. Made from the folder help.
 */
extern const char *const help_texts[COMMANDS + 1];

void help_overview(FILE *out);
void help_command(enum command command, FILE *out);

#endif
