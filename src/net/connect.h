/* SPDX-License-Identifier: MIT */
/* Makes the connection to a server: first its credentials, then the socket,
 * then the handshake on it. */
#ifndef NXLOCK_NET_CONNECT_H
#define NXLOCK_NET_CONNECT_H

#include "net/state.h"

/* Begins an attempt, which must be done by s->connect_end. CONNECTED: the
 * caller owns *made. FAILED: s->why and *fault say why. */
enum dial_state connect_start(
    struct server *s, uint64_t now, struct transport *made, enum fault *fault);
/* Call it when a descriptor is ready or connect_deadline() has come. */
enum dial_state connect_step(
    struct server *s, uint64_t now, struct transport *made, enum fault *fault);
uint64_t connect_deadline(const struct server *s);
/* Gives up this attempt, but keeps a look-up and a callback under way. */
void connect_cancel(struct server *s);

/* Processes a reply to a command of the handshake. FAULT_NONE: the handshake
 * goes on or is done; else why the connection must end. */
enum fault connect_reply(struct server *s, const struct reply *reply);

/* The peer has closed the connection during the handshake. Adds to s->why what
 * the peer may be, if it has answered neither CLIENT nor INFO, now or before.
 */
void connect_explain_close(struct server *s);

#endif
