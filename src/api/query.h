/* SPDX-License-Identifier: MIT */
/* Sends one command to one server, and ends those that are under way. */
#ifndef NXLOCK_API_QUERY_H
#define NXLOCK_API_QUERY_H

#include "client/client.h"

/* Sends a command and waits for its answer, as nxl_client_ask() does, but
 * checks nothing. It may be sent twice. */
int query_run(struct nxl_client *client, unsigned server,
    const struct slice *words, size_t count, nxl_answer **answer);

/* The client is being freed: all queries end. Needs the client's mutex. */
void query_cancel_all(struct nxl_client *client, uint64_t now);

#endif
