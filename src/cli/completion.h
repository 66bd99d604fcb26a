/* SPDX-License-Identifier: MIT */
/*
 * Prints the scripts with which shells complete the words of a command line.
 */
#ifndef NXLOCK_CLI_COMPLETION_H
#define NXLOCK_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* shell: bash, zsh or fish. False: there is no script for that shell. */
bool completion_print(const char *shell, FILE *out);

#endif
