/* SPDX-License-Identifier: MIT */
/* What stands in the line of a lock, by its keys at one real server. */
#ifndef NXLOCK_TESTS_IN_LINE_RIG_H
#define NXLOCK_TESTS_IN_LINE_RIG_H

#include "live/api_rig.h"

/* How many wait for the lock with this name, which has no braces. */
static inline long long line_length(const char *name)
{
    char key[128];
    snprintf(key, sizeof(key), "{%s}:nxl-l", name);
    return redis_run(servers, "ZCARD", key, NULL);
}

/* Nobody holds it, or waits for it. */
static inline bool is_free(const char *name)
{
    char mark[128];
    snprintf(mark, sizeof(mark), "{%s}:nxl-w", name);
    return !redis_exists(servers, name) && line_length(name) == 0 &&
           !redis_exists(servers, mark);
}

#endif
