/* SPDX-License-Identifier: MIT */
/*
 * Asks the processor for memory that is needed soon. With many locks most of
 * the time of a renewal would go into waiting for memory, one line after the
 * other; lines that are asked for together arrive together.
 */
#ifndef NXLOCK_BASE_PREFETCH_H
#define NXLOCK_BASE_PREFETCH_H

#include <stddef.h>

/* Of the usual caches. A wrong size costs time, nothing else. */
#define PREFETCH_LINE 64

/* Any address will do, even of memory that is not there. */
static inline void prefetch(const void *from, size_t len)
{
    const char *line = from;
    for (size_t at = 0; at < len; at += PREFETCH_LINE)
        __builtin_prefetch(line + at);
    if (len > 0) /* from need not be the beginning of a line */
        __builtin_prefetch(line + len - 1);
}

#endif
