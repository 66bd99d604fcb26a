/* SPDX-License-Identifier: MIT */
/*
 * One iteration of a client's loop, the same for both modes: wait with a
 * timeout, then act on ready descriptors and on the time. All calls but
 * loop_epoll() need the client's mutex.
 *
 * Invariant: an iteration does everything that can be done without waiting:
 * afterwards no completion is left, no timer is due, and no byte is unsent that
 * the socket would take.
 */
#ifndef NXLOCK_CLIENT_LOOP_H
#define NXLOCK_CLIENT_LOOP_H

#include <sys/epoll.h>

#include "client/client.h"

/* The most events of one wait; the next one returns what is left. Enough for
 * all servers, a second connection, the wake-up and the timer. */
#define LOOP_EVENTS (MAX_SERVERS + 4)

struct loop_events {
    int count;
    struct epoll_event list[LOOP_EVENTS];
};

/* When loop_process() must run at the latest; NEVER if there is no need. */
uint64_t loop_deadline(const struct nxl_client *client);

/* Sends what is waiting to be sent. */
void loop_push(struct nxl_client *client, uint64_t now);

/* Sleeps until a descriptor of the client's poller, set, is ready or the time
 * `until` has come (0: does not sleep). Needs no mutex, so that other threads
 * can go on meanwhile; one of them may replace the poller. */
void loop_epoll(
    int set, struct loop_events *events, uint64_t until, uint64_t now);

/* The same for the poller thread, until loop_deadline(): releases the mutex
 * meanwhile. False: another thread has replaced the poller, so the events are
 * not this one's. */
bool loop_sleep(
    struct nxl_client *client, struct loop_events *events, uint64_t now);

/* After that: reads, takes completions, runs timers, sends. */
void loop_process(
    struct nxl_client *client, const struct loop_events *events, uint64_t now);

/* Wakes the thread that is in loop_epoll(). */
void loop_wake(struct nxl_client *client);

/* After something was started: if the poller thread, or the event loop, would
 * sleep past its time, wakes it. */
void loop_hurry(struct nxl_client *client);

#endif
