/* SPDX-License-Identifier: MIT */
/* What an inspection finds, from several servers to one answer. */
#ifndef NXLOCK_API_INSPECT_H
#define NXLOCK_API_INSPECT_H

#include "api/client.h"

/* A server showed what stands there. */
void inspect_note(
    struct nxl_lock *lock, unsigned server, const struct outcome *outcome);

/* The name is held: of what the servers showed, takes the value that most of
 * them have for the holder's. */
void inspect_choose(struct nxl_lock *lock);

#endif
