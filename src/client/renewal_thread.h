/* SPDX-License-Identifier: MIT */
/*
 * The thread that renews the locks of a blocking client. It sleeps on a timer,
 * and polls (poller_thread.h) only while a renewal is under way and no caller
 * does: a program that blocks in calls pays nothing for it. All functions need
 * the client's mutex.
 *
 * Invariant: while a lock is renewed the thread runs, and wakes in time for
 * what is due. It blocks all signals, and ends when no lock has been renewed
 * for a while.
 */
#ifndef NXLOCK_CLIENT_RENEWAL_THREAD_H
#define NXLOCK_CLIENT_RENEWAL_THREAD_H

#include "client/client.h"

/* false: the system gave no thread or no descriptor; errno says why. */
bool renewal_thread_start(struct nxl_client *client);

/* Ends the thread and waits for its end. Releases the mutex while it waits. */
void renewal_thread_stop(struct nxl_client *client);

#endif
