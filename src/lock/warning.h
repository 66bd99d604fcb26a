/* SPDX-License-Identifier: MIT */
/*
 * The warnings of a client.
 *
 * Invariant: the user's function is called at most once for each kind, and once
 * for each failover, with no mutex held. The text of a kind is not written
 * after that; the text about a failover is a copy, made under the mutex.
 */
#ifndef NXLOCK_LOCK_WARNING_H
#define NXLOCK_LOCK_WARNING_H

#include "lock/handle.h"

/* A lock was granted: notes the warnings that are due for the first time. */
void warning_note_grant(const struct nxl_lock *lock);
/* The lock is held there for left_ms, which is longer than max_ttl_ms: notes
 * the warning if it is due. */
void warning_note_longer(
    const struct nxl_lock *lock, unsigned server, int64_t left_ms);
/* Adds how a server whose records are used may lose them, or nothing. */
void warning_of_records(const struct server *server, struct text *text);
/* Calls the user's function with the warnings that were noted. The mutex must
 * not be held. */
void warning_deliver(struct nxl_client *client);

#endif
