/* SPDX-License-Identifier: MIT */
/* Which handles of a client hold a lock: for nxl_client_holds(), and for the
 * message of a handle that finds it taken. */
#ifndef NXLOCK_LOCK_HELD_HERE_H
#define NXLOCK_LOCK_HELD_HERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct nxl_client;
struct nxl_lock;

struct held_here {
    size_t handles;
    bool alone;       /* one of them holds it exclusively */
    uint64_t held_ns; /* for how long, the one that was granted it first */
};

/* The handles of the client that hold the lock with this name. Needs the
 * client's mutex, and looks at each handle. */
struct held_here held_here(
    const struct nxl_client *client, struct slice name, uint64_t now);
/* The other handles that hold this one's lock, while it does not. */
struct held_here held_by_others_here(const struct nxl_lock *lock, uint64_t now);

#endif
