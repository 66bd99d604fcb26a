/* SPDX-License-Identifier: MIT */
/* Matches names against GLOB, as the server's SCAN does. */
#ifndef NXLOCK_CLI_GLOB_H
#define NXLOCK_CLI_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* In the zero-ended glob * is any text, ? any byte, [a-z] and [^a-z] one of
 * some bytes, and a backslash quotes what follows. name may have any bytes. */
bool glob_matches(const char *glob, const char *name, size_t length);

/* A pattern for SCAN: every key matches it that contains prefix and, behind
 * that, a name that matches glob. Others may match, too. NULL: no memory; else
 * the caller frees it. */
char *glob_around(const char *prefix, const char *glob);

#endif
