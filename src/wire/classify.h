/* SPDX-License-Identifier: MIT */
/*
 * What an error reply means. One table, matched on the first word and where
 * servers differ on the text; servers up to 6.2 hide the cause of a script's
 * error inside "ERR Error running script", which is looked into.
 */
#ifndef NXLOCK_WIRE_CLASSIFY_H
#define NXLOCK_WIRE_CLASSIFY_H

#include "base/fault.h"
#include "base/slice.h"

/* error: the bytes after '-'. Never FAULT_NONE. */
enum fault classify_error(struct slice error);

/* In reply to DISCARD: the transaction has ended. */
bool error_leaves(struct slice error);

bool error_is_noscript(struct slice error);

/* A refusal of whoever is connected, whatever the command: no other one would
 * fare better. */
bool error_is_of_login(struct slice error);

#endif
