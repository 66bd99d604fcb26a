/* SPDX-License-Identifier: MIT */
/* Ends the queries that are under way (nxl_client_ask()). */
#ifndef NXLOCK_API_QUERY_H
#define NXLOCK_API_QUERY_H

#include "client/client.h"

/* The client is being freed: all queries end. Needs the client's mutex. */
void query_cancel_all(struct nxl_client *client, uint64_t now);

#endif
