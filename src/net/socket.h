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

/* Begins to connect; returns the descriptor (wait for writable, then
 * socket_connected) or -1 with *error. */
int socket_open_tcp(
    const struct address *address, uint64_t keepalive_s, struct text *error);
/* A unix socket connects at once or fails; EAGAIN of a full backlog is a
 * failure that passes. A path that does not fit is refused, never cut. */
int socket_open_unix(const char *path, struct text *error);

/* The state of a connection that was begun; FAILED leaves fd to be closed.
 * A connection to itself, which TCP makes when there is no listener at a port
 * that is also the one chosen for this end, counts as refused. */
enum socket_state { SOCKET_CONNECTED, SOCKET_CONNECTING, SOCKET_FAILED };
enum socket_state socket_connected(int fd, struct text *error);

#endif
