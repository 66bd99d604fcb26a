/* SPDX-License-Identifier: MIT */
/*
 * One of the threads that wait in a blocking client, the leader, reads for all
 * of them. The others sleep until their call is over or the lead is handed to
 * them. A single-threaded program always leads, and pays for none of this.
 *
 * A leader of low priority may not get to run for long after it was woken or
 * became the leader. So a follower, or the renewal thread, watches it, and
 * takes over if it takes no turn. The former leader notices when it runs again:
 * it touches nothing, and becomes a follower unless its call is over.
 *
 * Invariant: while any call is running some thread leads or has been woken to
 * lead; the mutex is free while the leader sleeps. Only the leader waits for
 * the client's poller: the new leader replaces it, and the former leader closes
 * the one for which it waited.
 */
#ifndef NXLOCK_CLIENT_LEADER_H
#define NXLOCK_CLIENT_LEADER_H

#include "base/deadline.h"
#include "client/call.h"

/* How long a leader that was woken may take until it runs. */
#define LEADER_GRACE (20 * NS_PER_MS)

/* Needs the mutex. Makes the calling thread the leader; there must be none.
 * call: for which it waits; NULL: for none. */
void leader_take(struct nxl_client *client, struct call *call);
/* Needs the mutex. Makes the calling thread the leader instead of another one.
 * False: the system has no descriptors for that. */
bool leader_take_over(struct nxl_client *client, struct call *call);
/* Needs the mutex. One turn of the leader: sleeps, without the mutex, until
 * something happens, then acts on it. Returns the time then; 0: another thread
 * has taken over, and the caller is no longer the leader. */
uint64_t leader_turn(struct nxl_client *client, uint64_t now);
/* Needs the mutex. The leader steps down. A waiting thread takes over, or the
 * renewal thread, or none if nothing is to be read. */
void leader_hand_on(struct nxl_client *client);

/* Waits until the call is over. timer is that of its operation. Needs the
 * mutex, and releases it. */
void leader_wait(struct nxl_client *client, struct call *call,
    const struct timer *timer, uint64_t now);

#endif
