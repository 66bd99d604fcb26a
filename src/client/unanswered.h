/* SPDX-License-Identifier: MIT */
/*
 * Remembers which request of an operation may have been applied without a valid
 * answer. Later attempts may fail in another way, and their words alone would
 * not explain NXL_UNKNOWN.
 *
 * Invariant: only the last round that may have been applied at a quorum is
 * named. Other rounds of an acquire explain nothing.
 */
#ifndef NXLOCK_CLIENT_UNANSWERED_H
#define NXLOCK_CLIENT_UNANSWERED_H

#include "client/operation.h"

/* A server's request ended with this outcome. */
void unanswered_outcome(
    struct operation *op, unsigned server, const struct outcome *outcome);

/* The operation stops waiting for a server. */
void unanswered_abandon(struct operation *op, unsigned server);

/* Adds why a server did not answer: how far the connection got. */
void unanswered_add_silence(struct text *t, const struct server *server);

/* Result NXL_UNKNOWN, one server: t is "NAME: REASON"; inserts the request
 * after the name. */
void unanswered_explain(const struct operation *op, struct text *t);

/* Result NXL_UNKNOWN, several servers: adds the request to t. */
void unanswered_add(const struct operation *op, struct text *t);

#endif
