/* SPDX-License-Identifier: MIT */
/*
 * A call in progress. Its caller is a thread that sleeps or polls (blocking
 * API), or an event loop that fetches an event for it. All functions need the
 * client's mutex.
 */
#ifndef NXLOCK_CLIENT_CALL_H
#define NXLOCK_CLIENT_CALL_H

#include <semaphore.h>

#include "client/client.h"

struct call {
    bool running;
    /* MODE_BLOCKING: its thread sleeps while another one polls for it; it was
     * woken to be the next one that does. */
    bool asleep, made_poller;
    int result;       /* valid once it is no longer running */
    struct list node; /* MODE_LOOP: events. MODE_BLOCKING: sleepers */
    sem_t wake;       /* MODE_BLOCKING: wakes that thread */
};

void call_init(struct call *call);
void call_free(struct call *call);

/* The call is over: wakes its thread or queues its event. */
void call_over(struct nxl_client *client, struct call *call, int result);

/* Sleeps until the thread is woken, for so long at most (NEVER: without a
 * limit). False: it was not woken. Needs no mutex. */
bool call_sleep(struct call *call, uint64_t ns);

#endif
