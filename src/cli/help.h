/* SPDX-License-Identifier: MIT */
/*
 * The texts of --help.
 */
#ifndef NXLOCK_CLI_HELP_H
#define NXLOCK_CLI_HELP_H

#include <stdio.h>

#include "cli/args.h"

void help_overview(FILE *out);
void help_command(enum command command, FILE *out);

#endif
