/* SPDX-License-Identifier: MIT */
/* What the end of a call, or of its handle, means for the lease. */
#ifndef NXLOCK_CORE_SETTLE_H
#define NXLOCK_CORE_SETTLE_H

#include "core/state.h"

/* The vote of a call is over and all its effects have been taken: updates the
 * lease, and returns the result. status: as vote_next() said it. */
enum life_result life_settle(
    struct life *l, const struct effect *status, uint64_t now);

/* ADOPT, of which a quorum has the token: can it not become a lease, because
 * the token's deadline has passed or a server is deleting it? */
bool life_adoption_failed(const struct life *l, uint64_t now);

/* Checks a finished call against a fresh reading of the clock. True: its grant
 * expired before the result was returned to the caller; then
 * life_drop_expired() makes the result LIFE_LOST. life_grant_expired() needs no
 * mutex. */
bool life_grant_expired(const struct life *l, uint64_t now);
void life_drop_expired(struct life *l, uint64_t now);

/* The name of this lock, which is one of several of a handle, was granted, and
 * renewed since; now all of them are. They are renewed from now on, or not, and
 * the maximum hold begins. */
void life_all_granted(
    struct life *l, bool renewed, uint64_t max_hold_ns, uint64_t now);

/* BEGIN that was granted: its caller knows it from now on. */
void life_seen(struct life *l);

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
