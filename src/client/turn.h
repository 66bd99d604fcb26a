/* SPDX-License-Identifier: MIT */
/*
 * One turn of a client's loop, the same for both modes: wait with a timeout,
 * then act on ready descriptors and on the time. All calls but turn_wait() need
 * the client's mutex.
 *
 * Invariant: a turn does everything that can be done without waiting:
 * afterwards no completion is left, no timer is due, and no byte is unsent that
 * the socket would take.
 */
#ifndef NXLOCK_CLIENT_TURN_H
#define NXLOCK_CLIENT_TURN_H

#include <sys/epoll.h>

#include "client/client.h"

/* The most events of one wait; the next one returns what is left. Enough for
 * all servers, a second connection, the wake-up and the timer. */
#define TURN_EVENTS (MAX_SERVERS + 4)

struct turn_events {
    int count;
    struct epoll_event list[TURN_EVENTS];
};

/* When turn_process() must run at the latest; NEVER if there is no need. */
uint64_t turn_deadline(const struct nxl_client *client);

/* Sends what is waiting to be sent. */
void turn_push(struct nxl_client *client, uint64_t now);

/* Sleeps until a descriptor of the client's poller, set, is ready or the time
 * `until` has come (0: does not sleep). Needs no mutex, so that other threads
 * can go on meanwhile; one of them may replace the poller. */
void turn_wait(
    int set, struct turn_events *events, uint64_t until, uint64_t now);

/* The same for a leader, until turn_deadline(): releases the mutex meanwhile.
 * False: another thread has replaced the poller, so the events are not this
 * one's. */
bool turn_sleep(
    struct nxl_client *client, struct turn_events *events, uint64_t now);

/* After that: reads, takes completions, runs timers, sends. */
void turn_process(
    struct nxl_client *client, const struct turn_events *events, uint64_t now);

/* Wakes the thread that is in turn_wait(). */
void turn_wake(struct nxl_client *client);

/* After something was started: if the leader, or the event loop, would sleep
 * past its time, wakes it. */
void turn_hurry(struct nxl_client *client);

#endif
