/* SPDX-License-Identifier: MIT */
/*
 * The warnings of a client.
 *
 * Invariant: the user's function is called at most once for each kind, with no
 * mutex held; its text is not written after that.
 */
#ifndef NXLOCK_API_WARNING_H
#define NXLOCK_API_WARNING_H

#include "api/handle.h"

/* A lock was granted: what is to be reported for the first time will be ... */
void warning_note_grant(const struct nxl_lock *lock);
/* ... here, where no mutex is held. */
void warning_deliver(struct nxl_client *client);

#endif
