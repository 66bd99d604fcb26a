/* SPDX-License-Identifier: MIT */
/* The steps of a start, for redis.c, redis_places.c and redis_tls.c. */
#ifndef NXLOCK_TEST_REDIS_INNER_H
#define NXLOCK_TEST_REDIS_INNER_H

#include <stdarg.h>

#include "support/redis.h"

/* All zero but its places and more arguments. As redis_start() returns. */
int redis_prepare(struct redis *r, va_list extra);
void redis_find_places(struct redis *r);
void redis_add(struct redis *r, const char *argument);
/* Serves TLS, with certificates in a directory. */
void redis_add_tls(struct redis *r, const char *dir, const char *certificate,
    const char *clients);
void redis_find_ports(struct redis *r);
/* Finds ports and launches it; ends when it answers. */
int redis_begin(struct redis *r);

#endif
