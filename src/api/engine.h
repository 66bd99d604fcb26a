/* SPDX-License-Identifier: MIT */
/*
 * What drives a client, whoever waits: a time-out out, readiness and time in.
 * All calls but engine_wait need the client's mutex.
 */
#ifndef NXLOCK_API_ENGINE_H
#define NXLOCK_API_ENGINE_H

#include <sys/epoll.h>

#include "api/client.h"

/* Most events of one wait: each server, the wake-up, the timer. */
#define ENGINE_EVENTS (MAX_SERVERS + 2)

struct engine_events {
    int count;
    struct epoll_event list[ENGINE_EVENTS];
};

/* When engine_process has to run at the latest; NEVER. */
uint64_t engine_deadline(const struct nxl_client *client);

/* Sends what is waiting to be sent. */
void engine_push(struct nxl_client *client, uint64_t now);

/* Sleeps until a descriptor is ready or until has come; 0: only looks. Does
 * not need the mutex, so that others can go on meanwhile. */
void engine_wait(const struct nxl_client *client, struct engine_events *events,
    uint64_t until, uint64_t now);

/* Afterwards: reads, steps what is concerned, times out, sends. */
void engine_process(struct nxl_client *client,
    const struct engine_events *events, uint64_t now);

/* Interrupts the engine_wait() that another thread is in. */
void engine_wake(struct nxl_client *client);

/* After something was started: wakes whoever sleeps and may sleep too long for
 * it, a thread that leads or a loop that waits for the one descriptor. */
void engine_hurry(struct nxl_client *client);

/* An operation is over: its waiting thread, the event queue or the hold that
 * it renews is told. */
void engine_completed(
    struct nxl_client *client, struct operation *op, uint64_t now);

#endif
