/* SPDX-License-Identifier: MIT */
/*
 * Opens sockets as this library wants them: non-blocking, closed on exec, TCP
 * without delay and with keepalive. Bytes are moved by a transport.
 */
#ifndef NXLOCK_NET_SOCKET_H
#define NXLOCK_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "net/resolve.h"

/* *error is written on failure only, and errno then holds the cause. */

/* Begins to connect. Returns the descriptor (when it is writable, call
 * socket_connected), or -1 with *error. */
int socket_open_tcp(
    const struct address *address, uint64_t keepalive_s, struct text *error);
/* A unix socket connects at once or fails; EAGAIN means that the server's
 * backlog is full for now. A path that is too long is refused, never
 * truncated. */
int socket_open_unix(const char *path, struct text *error);

/* The state of a connection that was begun. FAILED: the caller closes fd. A
 * connection to itself, which TCP makes if nobody listens on a port and the
 * same port is chosen for this end, counts as refused. */
enum socket_state { SOCKET_CONNECTED, SOCKET_CONNECTING, SOCKET_FAILED };
enum socket_state socket_connected(int fd, struct text *error);

#endif
