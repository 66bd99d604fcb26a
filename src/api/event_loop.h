/* SPDX-License-Identifier: MIT */
/* The event-loop API: starts a call on a lock; its end is an event. */
#ifndef NXLOCK_API_EVENT_LOOP_H
#define NXLOCK_API_EVENT_LOOP_H

#include "lock/call_type.h"

int call_enqueue(struct nxl_lock *lock, const struct call_type *type,
    const struct call_args *args);

#endif
