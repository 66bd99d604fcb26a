/* SPDX-License-Identifier: MIT */
/*
 * Warns about servers whose answers may be incomplete or out of date: a replica
 * may lag behind its primary, and a node of a Redis Cluster has only the keys
 * of its own slots.
 */
#ifndef NXLOCK_CLI_LOOK_PARTIAL_H
#define NXLOCK_CLI_LOOK_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include <nxlock.h>

#define PARTIAL_WORDS 768

/* Writes why an answer may be incomplete or out of date into out, of
 * PARTIAL_WORDS bytes; all: the answer is about all names, not one. NULL: there
 * is no reason. Known after the server has answered. */
const char *partial_words(
    nxl_client *client, size_t server, bool all, char *out);

/* Prints such a warning about an answer for one name. With several servers
 * there is none, because a replica among them has no vote. */
void partial_say(nxl_client *client);

#endif
