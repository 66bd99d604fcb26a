/* SPDX-License-Identifier: MIT */
/*
 * Checks the value of an option and puts it where the table says.
 */
#ifndef NXLOCK_CLI_VALUE_H
#define NXLOCK_CLI_VALUE_H

#include "cli/table.h"

/* Stores the value of an option; value is NULL if the option takes none. shown
 * is the option as it was written. 0, or an exit code after reporting what is
 * wrong. */
int value_set(struct args *args, const struct option *option, const char *shown,
    const char *value);

/* Sets the name of the lock. Until the command line is complete, messages do
 * not show what looks like a token or a password: the words may be in the wrong
 * order. */
void value_set_name(struct args *args, const char *name);

#endif
