/* SPDX-License-Identifier: MIT */
/*
 * The handshake on a server's connection: processes its replies, and decides
 * whether the next connection begins with the full or the brief handshake.
 */
#ifndef NXLOCK_NET_SHAKE_H
#define NXLOCK_NET_SHAKE_H

#include "net/state.h"

/* Processes a reply to a command of the handshake. FAULT_NONE: the handshake
 * goes on or is done; else why the connection must end. */
enum fault shake_reply(struct server *s, const struct reply *reply);

/* The connection is about to be closed because of fault. Chooses the next
 * handshake. True: reconnect at once. */
bool shake_again(struct server *s, enum fault fault);

#endif
