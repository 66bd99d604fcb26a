/* SPDX-License-Identifier: MIT */
/*
 * Of the threads of a blocking client one reads for all: the leader. Calls
 * need the client's mutex.
 */
#ifndef NXLOCK_API_READING_H
#define NXLOCK_API_READING_H

#include "api/client.h"

/* Leads from now on; nobody does. */
void reading_take(struct nxl_client *client);
/* One turn of the leader: sleeps, without the mutex, until something happens,
 * and acts on it. Returns the time of that. */
uint64_t reading_turn(struct nxl_client *client, uint64_t now);
/* The leader goes: another one who waits leads, or the keeper, or nobody. */
void reading_hand_on(struct nxl_client *client);

#endif
