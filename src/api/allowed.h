/* SPDX-License-Identifier: MIT */
/*
 * Which commands may be sent by client_ask().
 *
 * Invariant: no command in the table changes a key or the state of the
 * connection, waits, or blocks the server for long, and the size of its answer
 * is bounded by its arguments.
 */
#ifndef NXLOCK_API_ALLOWED_H
#define NXLOCK_API_ALLOWED_H

#include "base/text.h"

/* Returns NULL if the command is allowed, else why it is not: the end of a
 * message that begins with the command. */
const char *allowed_refusal(const struct slice *words, size_t count);

/* Adds a likely reason why the server does not know the command, or not with
 * these arguments. */
void allowed_add_unsupported(
    struct text *text, const struct slice *words, size_t count);

#endif
