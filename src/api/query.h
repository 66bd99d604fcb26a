/* SPDX-License-Identifier: MIT */
/* Sends one command to one server, and ends those that are under way. */
#ifndef NXLOCK_API_QUERY_H
#define NXLOCK_API_QUERY_H

#include "client/client.h"

/* Sends the first server a command that changes something and is answered by 1,
 * or by 0 if there is nothing to change: NXL_OK or NXL_FREE. It is sent once:
 * NXL_UNKNOWN if it was sent and no answer shows whether it was carried out.
 * Otherwise as client_ask(). */
int query_change(
    struct nxl_client *client, const struct slice *words, size_t count);

/* The client is being freed: all queries end. Needs the client's mutex. */
void query_cancel_all(struct nxl_client *client, uint64_t now);

#endif
