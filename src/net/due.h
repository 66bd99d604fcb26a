/* SPDX-License-Identifier: MIT */
/*
 * Cleanups at a server that wait for their time: sent when they are due, and
 * dropped when their token can no longer be at the server.
 */
#ifndef NXLOCK_NET_DUE_H
#define NXLOCK_NET_DUE_H

#include "net/state.h"

/* Cleanups expire whether there is a connection or not. */
void due_expire(struct server *s, uint64_t now);

/* Formats those that are due. They leave before anything else: an acquire of
 * the same name must not be refused because of them. */
void due_push(struct server *s, uint64_t now);

/* When the first cleanup wants to be sent. Those that are under way, which may
 * be many, are not looked at. */
uint64_t due_at(struct server *s);

#endif
