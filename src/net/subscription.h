/* SPDX-License-Identifier: MIT */
/*
 * A server's second connection, which listens to channels. Messages come on it
 * that are no replies: server_next() returns each as a completion without a
 * request, whose outcome.value is the payload, and outcome.text the channel.
 *
 * Its handshake is brief (PING), because nothing but SUBSCRIBE is sent after
 * it.
 */
#ifndef NXLOCK_NET_SUBSCRIPTION_H
#define NXLOCK_NET_SUBSCRIPTION_H

#include "net/state.h"

/* Initialises s to listen at the same server as `like`, with a login of its
 * own. `like` must outlive s. */
void subscription_init(
    struct server *s, const struct server *like, uint64_t seed);

/* Is the reply a message for s, which listens to channels? Then it becomes the
 * completion *c. Any other push is not expected: it will be taken for the reply
 * that is due, or for one that nobody asked for, and either ends the
 * connection. */
bool subscription_take(struct server *s, const struct reply *reply,
    struct completion *c, uint64_t now);

#endif
