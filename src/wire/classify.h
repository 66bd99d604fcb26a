/* SPDX-License-Identifier: MIT */
/*
 * What an error reply means. One table is matched against the first word, or
 * against the text where the word does not tell. Servers up to 6.2 report the
 * cause of a script's error inside "ERR Error running script ...", so that text
 * is searched too.
 */
#ifndef NXLOCK_WIRE_CLASSIFY_H
#define NXLOCK_WIRE_CLASSIFY_H

#include "base/slice.h"
#include "model/fault.h"

/* error: the bytes after '-'. Never FAULT_NONE. */
enum fault classify_error(struct slice error);

/* How much of the error is in the table of classify.c: its code, or "ERR " and
 * words that all servers have. So these words may be shown whatever the
 * passwords are; 0: none. */
size_t classify_known(struct slice error);

/* May a command that got such an error have been carried out nevertheless? What
 * a server refuses does nothing, and our scripts write last. But an error that
 * no Redis server has may come from a proxy that did pass the command on. */
bool fault_leaves_doubt(enum fault fault);

/* In reply to DISCARD: no transaction is open any longer. */
bool error_ends_transaction(struct slice error);

bool error_is_noscript(struct slice error);

/* Is it certain that the error refuses the command, or one that a script runs,
 * and not just access to one key or channel? */
bool error_refuses_command(struct slice error);

#endif
