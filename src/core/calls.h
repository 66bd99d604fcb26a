/* SPDX-License-Identifier: MIT */
/*
 * The calls on a lock: what each of them begins. Afterwards the driver takes
 * actions and events, see life.h.
 *
 * No call may be running (life.running). Those that return bool say false when
 * the lease has expired: the call is over with LIFE_LOST, nothing is sent, and
 * there is no event. seed is for jitter and differs between contenders.
 */
#ifndef NXLOCK_CORE_CALLS_H
#define NXLOCK_CORE_CALLS_H

#include "core/state.h"

/* wait_ns: how long to wait for the name; NEVER. Not while it is held. */
void life_acquire(
    struct life *l, uint64_t wait_ns, uint64_t seed, uint64_t now);
bool life_extend(struct life *l, uint32_t ttl_ms, uint64_t seed, uint64_t now);
bool life_release(struct life *l, uint64_t seed, uint64_t now);
/* own: the token is the one that the lock has already. Not while it is held. */
void life_adopt(struct life *l, bool own, uint64_t seed, uint64_t now);
/* INSPECT, or any call that only asks the servers what its row says, and means
 * nothing for the lease. */
void life_ask(struct life *l, enum life_call call, uint64_t seed, uint64_t now);
/* Removes a value. own: it is the lock's own token, which ends its lease. */
bool life_break(struct life *l, bool own, uint64_t seed, uint64_t now);

/* Ends the call that is running, if there is one. */
void life_cancel(struct life *l);
/* Its handle ends: as life_cancel(), but a release goes on in the background.
 * Then, once all actions have been taken, life_part(). */
void life_discard(struct life *l);

#endif
