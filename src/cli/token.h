/* SPDX-License-Identifier: MIT */
/*
 * The shape of a token, to tell it from a name and to keep it out of messages.
 */
#ifndef NXLOCK_CLI_TOKEN_H
#define NXLOCK_CLI_TOKEN_H

#include <stdbool.h>

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", or that and "@label". */
bool is_token(const char *word);

#endif
