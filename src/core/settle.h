/* SPDX-License-Identifier: MIT */
/* What the end of a call, or of its handle, means for the lease. */
#ifndef NXLOCK_CORE_SETTLE_H
#define NXLOCK_CORE_SETTLE_H

#include "core/state.h"

/* The vote of a call is over and all its effects have been taken: updates the
 * lease, and returns the result. */
enum life_result life_settle(struct life *l, uint64_t now);

/* Ends a lease that was not released; or whose release, together with the
 * outcome of the work (TELL), may not have arrived. Its key is removed in the
 * background, unless the minimum hold is not over. */
void life_end_lease(struct life *l, uint64_t now);
/* Ends the lease, and leaves the key to its TTL. */
void life_end_keeping_key(struct life *l, uint64_t now);
/* Ends the lease, and removes the key in the background, unless another process
 * may own it by now; and takes back a BEGIN that its caller does not know of.
 */
void life_end_removing_key(struct life *l, uint64_t now);

#endif
