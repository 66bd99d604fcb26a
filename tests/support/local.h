/* SPDX-License-Identifier: MIT */
/* Places on this machine that belong to one test alone. */
#ifndef NXLOCK_TEST_LOCAL_H
#define NXLOCK_TEST_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCAL_PATH 108 /* what fits into a unix socket's address */

/* A new directory under $TMPDIR or /tmp; ends the program when there is
 * none. local_dir_remove() takes all its content along; "" is fine. */
void local_dir_make(char dir[LOCAL_PATH]);
void local_dir_remove(const char *dir);
/* dir/name into path; ends the program when that does not fit. */
void local_path(char path[LOCAL_PATH], const char *dir, const char *name);

/* A listening socket, closed on exec, or -1. */
int local_listen_unix(const char *path);
/* port 0: a free one, outside the range from which the system takes ports
 * for outgoing connections. A client that dials a port of that range while
 * nobody listens there may get connected to itself. */
int local_listen_tcp(uint16_t *port);
/* From now on, or no more, who connects there is refused. Meanwhile the port
 * stays ours: once closed it may be that of another test's server, and what is
 * under test would talk to that. False: it cannot listen again. */
bool local_refuse_tcp(int listener, bool refused);

/* A connected socket, or -1. path NULL: 127.0.0.1:port. */
int local_connect(const char *path, uint16_t port);

/* All of it, blocking; false: the peer is gone. Never raises SIGPIPE. */
bool local_send(int fd, const void *data, size_t len);

/* Small packets leave at once; of a unix socket they do anyway. */
void local_no_delay(int fd);

/* The next close() resets a TCP connection. */
void local_make_reset(int fd);

#endif
