/* SPDX-License-Identifier: MIT */
/*
 * Which request of an operation may have been applied although no valid answer
 * to it came. The attempts after it may fail in another way, and then their
 * words alone would not explain NXL_UNKNOWN.
 *
 * Invariant: what is named is the last round that may have been applied at a
 * quorum. Rounds of an acquire that had no chance of that explain nothing.
 */
#ifndef NXLOCK_CLIENT_UNANSWERED_H
#define NXLOCK_CLIENT_UNANSWERED_H

#include "client/operation.h"

/* A server's part ended with this outcome. */
void unanswered_outcome(
    struct operation *op, unsigned server, const struct outcome *outcome);

/* The operation stops waiting for a server. */
void unanswered_leave(struct operation *op, unsigned server);

/* Adds why a server did not answer: how far the connection got. */
void unanswered_add_silence(struct text *t, const struct server *server);

/* Result NXL_UNKNOWN, one server: t holds the server's name and a reason; puts
 * the request between them. */
void unanswered_explain(const struct operation *op, struct text *t);

/* Result NXL_UNKNOWN, several servers: adds the request to t. */
void unanswered_add(const struct operation *op, struct text *t);

#endif
