/* SPDX-License-Identifier: MIT */
/*
 * One turn of a client's loop, the same for both modes: wait with a timeout,
 * then act on ready descriptors and on the time. All calls but turn_wait() need
 * the client's mutex.
 *
 * Invariant: after a turn nothing is left undone that could be done without
 * waiting: no completion left, no timer due, no formatted byte unsent that
 * the socket would take.
 */
#ifndef NXLOCK_CLIENT_TURN_H
#define NXLOCK_CLIENT_TURN_H

#include <sys/epoll.h>

#include "client/client.h"

/* Most events of one wait: each server, the wake-up, the timer. */
#define TURN_EVENTS (MAX_SERVERS + 2)

struct turn_events {
    int count;
    struct epoll_event list[TURN_EVENTS];
};

/* When turn_process has to run at the latest; NEVER. */
uint64_t turn_deadline(const struct nxl_client *client);

/* Sends what is waiting to be sent. */
void turn_push(struct nxl_client *client, uint64_t now);

/* Sleeps until a descriptor is ready or until has come; 0: only looks. Does
 * not need the mutex, so that others can go on meanwhile. */
void turn_wait(const struct nxl_client *client, struct turn_events *events,
    uint64_t until, uint64_t now);

/* Afterwards: reads, steps what is concerned, times out, sends. */
void turn_process(
    struct nxl_client *client, const struct turn_events *events, uint64_t now);

/* Wakes the thread that is in turn_wait(). */
void turn_wake(struct nxl_client *client);

/* After something was started: wakes a leader, or makes the loop's descriptor
 * readable, if either would sleep past the time at which it is due. */
void turn_hurry(struct nxl_client *client);

#endif
