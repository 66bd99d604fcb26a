/* SPDX-License-Identifier: MIT */
/*
 * One of the threads that wait in a blocking client, the poller thread, reads
 * for all of them (the pattern "leader/followers"). The others sleep until
 * their call is over or they are woken to be the next poller thread. In a
 * program with one thread that is always the poller thread, and pays for none
 * of this.
 *
 * With a low priority it may not get to run for long after it was woken. So a
 * thread that sleeps, or the renewal thread, looks after it, and takes over if
 * it does no iteration. The replaced one notices when it runs again: it touches
 * nothing, and sleeps unless its call is over.
 *
 * Invariant: while any call is running there is a poller thread, or one has
 * been woken to be it; the mutex is free while it sleeps. Only the poller
 * thread waits for the client's poller: one that takes over replaces that, and
 * the thread that was replaced closes the one for which it waited.
 */
#ifndef NXLOCK_CLIENT_POLLER_THREAD_H
#define NXLOCK_CLIENT_POLLER_THREAD_H

#include "base/deadline.h"
#include "client/call.h"

/* How long a poller thread that was woken may take until it runs. */
#define POLLER_THREAD_GRACE (20 * NS_PER_MS)

/* Needs the mutex. Makes the calling thread the poller thread; there is none.
 * call: for which it waits; NULL: for none. */
void poller_thread_become(struct nxl_client *client, struct call *call);
/* Needs the mutex. Makes it the calling thread instead of another one.
 * False: the system has no descriptors for that. */
bool poller_thread_take_over(struct nxl_client *client, struct call *call);
/* Needs the mutex. One iteration of the loop: sleeps, without the mutex, until
 * something happens, then acts on it. Returns the time then; 0: another thread
 * has taken over, and the caller is no longer the poller thread. */
uint64_t poller_thread_iterate(struct nxl_client *client, uint64_t now);
/* Needs the mutex. The poller thread stops. A waiting thread takes over, or the
 * renewal thread, or none if nothing is to be read. */
void poller_thread_hand_on(struct nxl_client *client);

/* Waits until the call is over. timer is that of its operation. Needs the
 * mutex, and releases it. */
void poller_thread_wait(struct nxl_client *client, struct call *call,
    const struct timer *timer, uint64_t now);

#endif
