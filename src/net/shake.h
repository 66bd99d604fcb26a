/* SPDX-License-Identifier: MIT */
/*
 * The handshake on a server's connection: takes its replies in, and decides
 * which handshake the next connection begins with, the full or the brief one.
 */
#ifndef NXLOCK_NET_SHAKE_H
#define NXLOCK_NET_SHAKE_H

#include "net/state.h"

/* A reply to a command of the handshake. FAULT_NONE: it goes on, or it is
 * done. Else the connection has to end because of that. */
enum fault shake_reply(struct server *s, const struct reply *reply);

/* The connection is about to be closed because of fault. Chooses the next
 * handshake. True: it is worth trying at once. */
bool shake_again(struct server *s, enum fault fault);

#endif
