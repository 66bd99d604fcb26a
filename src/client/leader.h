/* SPDX-License-Identifier: MIT */
/*
 * One of the threads that wait in a blocking client, the leader, reads for all
 * of them. The others sleep until their call is over or the lead is handed to
 * them. A single-threaded program always leads, and pays for none of this.
 *
 * Invariant: while any call is running some thread leads or has been woken to
 * lead; the mutex is free while the leader sleeps.
 */
#ifndef NXLOCK_CLIENT_LEADER_H
#define NXLOCK_CLIENT_LEADER_H

#include "client/call.h"

/* Needs the mutex. Makes the calling thread the leader; there must be none. */
void leader_take(struct nxl_client *client);
/* Needs the mutex. One turn of the leader: sleeps, without the mutex, until
 * something happens, then acts on it. Returns the time then. */
uint64_t leader_turn(struct nxl_client *client, uint64_t now);
/* Needs the mutex. The leader steps down. A waiting thread takes over, or the
 * renewal thread, or none if nothing is to be read. */
void leader_hand_on(struct nxl_client *client);

/* Waits until the call is over. Needs the mutex, and releases it. */
void leader_wait(struct nxl_client *client, struct call *call, uint64_t now);

#endif
