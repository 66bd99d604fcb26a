/* SPDX-License-Identifier: MIT */
/*
 * The cleanups at a server that are due (CLEANUP_DUE): sends them at their
 * time, and drops them when their token can no longer be at the server.
 */
#ifndef NXLOCK_NET_DUE_H
#define NXLOCK_NET_DUE_H

#include "net/state.h"

/* The cleanup is over: frees k, and counts it if it was given up. */
void due_over(struct server *s, struct cleaner *k);

/* Drops cleanups that have expired, whether there is a connection or not. */
void due_expire(struct server *s, uint64_t now);

/* Formats those whose time has come. They are sent before anything else: an
 * acquire of the same name must not find a key that is about to be removed. */
void due_push(struct server *s, uint64_t now);

/* When the first cleanup is to be sent. Those that are under way, which may be
 * many, are not searched. */
uint64_t due_at(struct server *s);

#endif
