/* SPDX-License-Identifier: MIT */
/*
 * Servers whose answers may be incomplete or out of date: a
 * replica may lag behind its primary, and a node of a Redis Cluster has only
 * the keys of its own slots.
 */
#ifndef NXLOCK_CLI_PARTIAL_H
#define NXLOCK_CLI_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include <nxlock.h>

#define PARTIAL_WORDS 768

/* Why the answer about one name, or with all about all names, may be
 * incomplete or out of date: one clause into out, of PARTIAL_WORDS bytes.
 * NULL: there is no reason. Known after the server has answered. */
const char *partial_words(
    nxl_client *client, size_t server, bool all, char *out);

/* Says so on standard error about an answer for one name. Several servers
 * vote, so that a replica among them decides nothing. */
void partial_say(nxl_client *client);

#endif
