/* SPDX-License-Identifier: MIT */
/* The blocking API: makes a call on a lock and waits for its result. */
#ifndef NXLOCK_API_BLOCKING_H
#define NXLOCK_API_BLOCKING_H

#include "lock/call_type.h"

int call_block(struct nxl_lock *lock, const struct call_type *type,
    const struct call_args *args);

#endif
