/* SPDX-License-Identifier: MIT */
/*
 * What the scripts of all shells offer besides commands and options.
 */
#ifndef NXLOCK_CLI_COMPLETION_WORDS_H
#define NXLOCK_CLI_COMPLETION_WORDS_H

#include <stdio.h>

#include "cli/table.h"

/* A word that is offered. text NULL ends a list. */
struct offer {
    const char *text;
    const char *help;
};

/* Words that can be the first one, besides the commands, and the shells. */
extern const struct offer completion_first[];
extern const struct offer completion_shells[];

/* The i-th word that acl takes, from 0; after the last one, text is NULL. */
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

/* Prints the choices of an option's value, with blanks between them. */
void completion_print_choices(FILE *out, const struct option *option);

/* Prints text with a backslash before each byte of special, for a word in
 * single quotes. */
void completion_escape(FILE *out, const char *text, const char *special);

#endif
