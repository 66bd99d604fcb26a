/* SPDX-License-Identifier: MIT */
/*
 * Sockets as this library wants them: non-blocking, closed on exec, never
 * raising SIGPIPE, TCP without delay and with keepalive. And the two
 * functions that move bytes, as a table, so that TLS can be another one.
 */
#ifndef NXLOCK_NET_SOCKET_H
#define NXLOCK_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Where a connection that was begun stands; FAILED leaves fd to be closed.
 * A connection to itself, which TCP makes when nobody listens at a port that
 * is also the one chosen for this end, counts as refused. */
enum socket_state { SOCKET_CONNECTED, SOCKET_CONNECTING, SOCKET_FAILED };
enum socket_state socket_connected(int fd, struct text *error);

/* How bytes move. Both return the count, 0 for "not now", -1 for a lost
 * connection with errno set; receive returns -1 with errno 0 when the peer
 * closed in order. */
struct transport {
    ssize_t (*send)(int fd, const void *bytes, size_t len);
    ssize_t (*receive)(int fd, void *bytes, size_t room);
};
extern const struct transport transport_plain;

/* A connection, looked at without reading. */
enum socket_news {
    SOCKET_QUIET, /* there is nothing */
    SOCKET_TALKS, /* there is something to read */
    SOCKET_OVER   /* the peer has closed or reset it, perhaps behind that */
};
enum socket_news socket_news(int fd);

#endif
