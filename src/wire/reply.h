/* SPDX-License-Identifier: MIT */
/*
 * One reply as the wire layer sees it: RESP2, without nested arrays. The bytes
 * belong to the reader and are valid until the next reply.
 */
#ifndef NXLOCK_WIRE_REPLY_H
#define NXLOCK_WIRE_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum reply_kind {
    REPLY_STATUS,
    REPLY_ERROR,
    REPLY_INTEGER,
    REPLY_NIL, /* both $-1 and *-1 */
    REPLY_STRING,
    REPLY_ARRAY
};

#define REPLY_ITEMS 8

struct reply {
    enum reply_kind kind;
    int64_t integer;
    struct slice bytes; /* STATUS, ERROR, STRING */
    bool truncated; /* STRING, not in an array: only its beginning is here */
    bool nested;    /* ARRAY whose values are collected: with arrays inside */
    /* ARRAY: items of any kind but ARRAY. */
    size_t count;
    const struct reply *items;
};

#endif
