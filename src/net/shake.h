/* SPDX-License-Identifier: MIT */
/* The handshake on a server's connection: processes its replies, and explains
 * why a peer may close the connection instead of answering. */
#ifndef NXLOCK_NET_SHAKE_H
#define NXLOCK_NET_SHAKE_H

#include "net/state.h"

/* Processes a reply to a command of the handshake. FAULT_NONE: the handshake
 * goes on or is done; else why the connection must end. */
enum fault shake_reply(struct server *s, const struct reply *reply);

/* The peer has closed the connection during the handshake. Adds to s->why what
 * the peer may be, if it has answered neither CLIENT nor INFO, now or before.
 */
void shake_explain_close(struct server *s);

#endif
