/* SPDX-License-Identifier: MIT */
/*
 * Text that came from a server, in the form in which it may be shown: as it is,
 * or words that it is omitted, if a password may be in it.
 *
 * Invariant: what a server said is printed, logged or put into an environment
 * only by one of these functions. The messages of the library need none. Two
 * things are exact, because they are what the user's own programs wrote: the
 * names of locks, and the output of CMD that once prints again.
 */
#ifndef NXLOCK_CLI_LOOK_FOREIGN_H
#define NXLOCK_CLI_LOOK_FOREIGN_H

#include <stddef.h>

#include <nxlock.h>

/* The client whose passwords are looked for; NULL: there is none any longer. */
void foreign_use(const nxl_client *client);

/* Returns the text, or the words; *length is the length of both. */
const char *foreign_bytes(const char *text, size_t *length);
/* The same of a zero-terminated text. */
const char *foreign(const char *text);

#endif
