/* SPDX-License-Identifier: MIT */
/* What the end of a call, or of its handle, means for the lease. */
#ifndef NXLOCK_CORE_SETTLE_H
#define NXLOCK_CORE_SETTLE_H

#include "core/state.h"

/* The vote of the call is over and all its asks have been taken: what has
 * become of the lease, and the result. */
enum life_result life_settle(struct life *l, uint64_t now);

/* A lease that was not released ends: its key is removed in the background,
 * unless the minimum hold is not over. */
void life_part(struct life *l, uint64_t now);
/* The lease ends; the key is left to its TTL. */
void life_leave(struct life *l, uint64_t now);
/* The lease ends; the key is removed in the background as far as it is ours. */
void life_let_go(struct life *l, uint64_t now);

#endif
