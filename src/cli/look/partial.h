/* SPDX-License-Identifier: MIT */
/*
 * Warns about an answer that may be out of date: a replica may lag behind its
 * primary. With several servers there is no warning, because a replica among
 * them has no vote.
 */
#ifndef NXLOCK_CLI_LOOK_PARTIAL_H
#define NXLOCK_CLI_LOOK_PARTIAL_H

#include <nxlock.h>

#define PARTIAL_WORDS 768

/* Writes the warning into out, of PARTIAL_WORDS bytes. NULL: there is none.
 * Known after the server has answered. */
const char *partial_words(nxl_client *client, char *out);

/* Prints it, if there is one. */
void partial_say(nxl_client *client);

#endif
