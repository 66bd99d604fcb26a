/* SPDX-License-Identifier: MIT */
/*
 * The scripts of completion.h, one function for each shell. A script is a file
 * of the folder completion, with what is the same whatever the table says, and
 * what is made from the table.
 */
#ifndef NXLOCK_CLI_COMPLETION_SHELLS_H
#define NXLOCK_CLI_COMPLETION_SHELLS_H

#include <stdio.h>

extern const char functions_bash[], functions_zsh[], functions_fish[];

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

#endif
