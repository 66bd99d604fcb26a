/* SPDX-License-Identifier: MIT */
/*
 * The scripts of completion.h, one function for each shell, and what they have
 * in common. A script is a file of the folder completion, which has what is the
 * same whatever the table says, and functions that are made from the table.
 */
#ifndef NXLOCK_CLI_COMPLETION_SHELLS_H
#define NXLOCK_CLI_COMPLETION_SHELLS_H

#include <stdio.h>

#include "cli/table.h"

extern const char functions_bash[], functions_zsh[], functions_fish[];

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

/* A word that is offered. text NULL ends a list. */
struct offer {
    const char *text;
    const char *help;
};

/* Words that can be the first one, besides the commands, and the shells. */
extern const struct offer completion_first[];
extern const struct offer completion_shells[];

/* What acl takes: row i, whose text is NULL behind the last one. */
struct offer completion_feature(size_t i);

/* What the value of an option can be completed with. */
enum completion_value {
    COMPLETE_NOTHING,
    COMPLETE_CHOICES,
    COMPLETE_FILES,
    COMPLETE_FOLDERS,
    COMPLETE_NAMES /* of held locks, if the command's NAME is one */
};
enum completion_value completion_value(const struct option *option);

/* Prints text with a backslash before each byte of special, for a word in
 * single quotes. */
void completion_escape(FILE *out, const char *text, const char *special);

#endif
