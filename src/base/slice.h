/* SPDX-License-Identifier: MIT */
/* Bytes with a length, owned by someone else. They may contain zero bytes, and
 * need not end with one. */
#ifndef NXLOCK_BASE_SLICE_H
#define NXLOCK_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_starts(struct slice s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && memcmp(s.data, prefix, len) == 0;
}

#endif
