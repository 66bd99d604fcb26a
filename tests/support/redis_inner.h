/* SPDX-License-Identifier: MIT */
/* The steps of a start, for redis.c and redis_tls.c. */
#ifndef NXLOCK_TEST_REDIS_INNER_H
#define NXLOCK_TEST_REDIS_INNER_H

#include <stdarg.h>

#include "support/redis.h"

/* All zero but its places and more arguments. As redis_start() returns. */
int redis_prepare(struct redis *r, va_list extra);
void redis_add(struct redis *r, const char *argument);
/* Finds free ports; ends when it answers. */
int redis_begin(struct redis *r);

#endif
