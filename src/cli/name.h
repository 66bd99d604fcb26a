/* SPDX-License-Identifier: MIT */
/*
 * The name of a lock in messages. It may have any bytes and length, but must
 * not break the line, and a proposed command must work when it is copied.
 */
#ifndef NXLOCK_CLI_NAME_H
#define NXLOCK_CLI_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "model/companion.h"

#define NAME_SHOWN 112
/* Of what messages show of several names. */
#define NAMES_SHOWN (3 * NAME_SHOWN + 32)
#define NAME_PASTED 512

/* name without control bytes, and cut if it is long. Returns out, which has
 * NAME_SHOWN bytes. */
const char *name_shown(char *out, const char *name);

/* For messages about a command line that is not valid, so that the name may be
 * something else: if it looks like a token or holds a password, writes what may
 * be shown and pasted, of NAME_SHOWN and NAME_PASTED bytes, and returns true.
 */
bool name_hide_secret(char *shown, char *pasted, const char *name);

/* A word of the command to run, shorter than NAME_PASTED / 4 - 8, quoted if a
 * shell would not take it as it is; 'CMD...' if it has control characters,
 * which no message can show. Returns out, which has NAME_PASTED bytes. */
const char *word_pasted(char *out, const char *word);

/* name as a word of a shell's command line; NAME if it is too long for one, or
 * has control characters. Returns out, which has NAME_PASTED bytes. */
const char *name_pasted(char *out, const char *name);

/* The name of a key that accompanies the lock's key; the caller frees it. NULL:
 * no memory. */
char *name_companion(const char *key, enum companion what);

/* The name of a lock of a command's own, beside NAME, so that the same patterns
 * of permissions match: NAME:what:RANDOM. With a prefix it is in braces: then
 * its counter's key begins with the prefix too, and can be removed as a name.
 * NULL as beside: "nxlock". The caller frees it. NULL: no memory. */
char *name_own(const char *prefix, const char *beside, const char *what);

#endif
