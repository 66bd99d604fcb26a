/* SPDX-License-Identifier: MIT */
/*
 * An operation of several servers that is decided listens on to some of them
 * for a moment (operation.late):
 *
 * - an inspection, so that it can tell of each server;
 * - an acquire, where a server is just being connected: a lock that stands at
 *   no more servers than it needs would not outlive the loss of one.
 */
#ifndef NXLOCK_API_LINGER_H
#define NXLOCK_API_LINGER_H

#include "api/client.h"

/* At ASK_LEAVE: is server to be listened on to? */
bool linger_on(const struct operation *op, unsigned server);

/* Until when, at most. */
uint64_t linger_until(const struct operation *op, uint64_t now);

/* Nobody waits for server any more. */
void linger_leave(struct operation *op, unsigned server, uint64_t now);

/* ... nor for any of those that are late. */
void linger_end(struct operation *op, uint64_t now);

#endif
