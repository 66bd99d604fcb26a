/* SPDX-License-Identifier: MIT */
/*
 * Creates the client for the servers of a command line.
 */
#ifndef NXLOCK_CLI_SERVERS_CONNECT_H
#define NXLOCK_CLI_SERVERS_CONNECT_H

#include <nxlock.h>

#include "cli/args.h"
#include "cli/servers/urls.h"

/* The URLs of args, with what options and variables add to them. False: no
 * memory. */
bool connect_urls(const struct args *args, struct url_list *list);

/* Creates the client. 0, or an exit code after reporting why not. */
int connect_client(
    nxl_client **client, const struct args *args, nxl_client_options *options);

/* Creates one more client for the same servers; it reports nothing. NULL and
 * the result if that fails. */
int connect_again(nxl_client **client, const struct args *args,
    const nxl_client_options *options);

/* The remedy for a result of the client, in a line of its own, if there is one
 * that the client's or lock's message does not have. */
void connect_advise(const struct args *args, nxl_client *client, int result);

#endif
