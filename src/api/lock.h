/* SPDX-License-Identifier: MIT */
/* Makes the locks that a handle consists of. Needs the client's mutex. */
#ifndef NXLOCK_API_LOCK_H
#define NXLOCK_API_LOCK_H

#include "api/options.h"
#include "lock/handle.h"

/* Makes a lock from checked options. NULL: out of memory. */
struct nxl_lock *lock_make(
    struct nxl_client *client, const struct lock_settings *set);

/* Frees a lock that has ended. */
void lock_unmake(struct nxl_lock *lock);

#endif
