/* SPDX-License-Identifier: MIT */
/*
 * Prints --help: the examples and the prose of the folder help, and what the
 * table says of options and exit codes.
 */
#ifndef NXLOCK_CLI_HELP_H
#define NXLOCK_CLI_HELP_H

#include <stdio.h>

#include "cli/args.h"

/* By enum command, and behind these the texts of no command. Made from the
 * folder help. */
enum { HELP_OVERVIEW = COMMANDS, HELP_CONNECTION, HELP_TEXTS };
extern const char *const help_texts[HELP_TEXTS];

/* The path of the configuration file of the machine in this installation:
 * /etc/nxlock.conf for the prefixes /usr and /usr/local. */
extern const char system_config[];

/* The word after "nxlock help" for the options of every command. */
#define HELP_CONNECTION_WORD "connection"
#define HELP_CONNECTION_SUMMARY "options of every command"

void help_overview(FILE *out);
void help_connection(FILE *out);
void help_command(enum command command, FILE *out);

#endif
