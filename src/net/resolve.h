/* SPDX-License-Identifier: MIT */
/*
 * Resolves a host name without blocking the caller. Numeric addresses and
 * "localhost" (127.0.0.1, then ::1; RFC 6761) are answered at once. Any other
 * name is looked up by getaddrinfo() in a thread for this look-up alone
 * (job.h).
 */
#ifndef NXLOCK_NET_RESOLVE_H
#define NXLOCK_NET_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/text.h"

#define RESOLVE_MAX 8

struct address {
    struct sockaddr_storage bytes;
    socklen_t len;
};

struct addresses {
    size_t count;
    struct address list[RESOLVE_MAX];
};

/* Adds "127.0.0.1:6379" or "[::1]:6379" to *text. */
void address_show(const struct address *address, struct text *text);

struct resolve; /* a look-up under way */

enum resolve_state { RESOLVE_DONE, RESOLVE_WAIT, RESOLVE_FAILED };

/* DONE: *found is filled. WAIT: *job is the look-up and *fd becomes readable
 * when it is over (do not read or close it). FAILED: *error says why. */
enum resolve_state resolve_start(const char *host, uint16_t port,
    struct addresses *found, struct resolve **job, int *fd, struct text *error);

/* Asks whether job is over. DONE and FAILED free it. */
enum resolve_state resolve_poll(
    struct resolve *job, struct addresses *found, struct text *error);

/* Is it the look-up of that host and port? */
bool resolve_is_of(const struct resolve *job, const char *host, uint16_t port);

/* Gives up the job; NULL is fine. Also for a fork()ed child, which has the job
 * but not its thread, and must not call resolve_poll(). */
void resolve_abandon(struct resolve *job);

#endif
