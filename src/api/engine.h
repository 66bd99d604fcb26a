/* SPDX-License-Identifier: MIT */
/*
 * What drives a client, whoever waits in poll(): descriptors and time-out
 * out, readiness and time in. All calls need the client's mutex.
 */
#ifndef NXLOCK_API_ENGINE_H
#define NXLOCK_API_ENGINE_H

#include "api/client.h"

/* Descriptors of a client, the wake-up one first. */
#define ENGINE_FDS (MAX_SERVERS + 1)

size_t engine_pollfds(
    struct nxl_client *client, struct pollfd *fds, size_t capacity);
/* When engine_process has to run at the latest; NEVER. */
uint64_t engine_deadline(const struct nxl_client *client);

/* Sends what is waiting to be sent. */
void engine_push(struct nxl_client *client, uint64_t now);

/* After poll(): reads, steps what is concerned, times out, sends. fds are
 * those of engine_pollfds; NULL: look at all descriptors first. */
void engine_process(struct nxl_client *client, const struct pollfd *fds,
    size_t count, uint64_t now);

/* Interrupts a poll() that another thread is in. */
void engine_wake(struct nxl_client *client);

/* An operation is over: its waiting thread or the event queue is told. */
void engine_completed(struct nxl_client *client, struct operation *op);

#endif
