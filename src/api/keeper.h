/* SPDX-License-Identifier: MIT */
/*
 * The thread that renews for a client of the blocking door, while there is
 * something to be renewed. All calls need the client's mutex.
 */
#ifndef NXLOCK_API_KEEPER_H
#define NXLOCK_API_KEEPER_H

#include "api/client.h"

void keeper_init(struct keeper *keeper);

/* Before a lock is acquired that is to be kept alive. false: the system gave
 * no thread or no descriptor; errno says why. */
bool keeper_start(struct nxl_client *client);

/* Something is due at that time; nothing is to be kept any more; the reading
 * is free, and answers are due. */
void keeper_expect(struct nxl_client *client, uint64_t at);
void keeper_unneeded(struct nxl_client *client, uint64_t now);
void keeper_lead(struct nxl_client *client);

/* Ends it and waits for that. Lets go of the mutex meanwhile. */
void keeper_stop(struct nxl_client *client);

#endif
