/* SPDX-License-Identifier: MIT */
/* A plain transport whose socket takes only so many bytes. */
#ifndef NXLOCK_TESTS_UNIT_STINGY_H
#define NXLOCK_TESTS_UNIT_STINGY_H

#include "net/transport.h"

static struct {
    struct transport_kind kind;
    size_t allowance; /* bytes that the socket still takes */
} stingy;

static inline ssize_t stingy_send(
    struct transport *t, const void *bytes, size_t len)
{
    if (len > stingy.allowance)
        len = stingy.allowance;
    stingy.allowance -= len;
    return len ? transport_plain.send(t, bytes, len) : 0;
}

/* From now on this transport sends so many bytes in all. */
static inline void stingy_allow(struct transport *t, size_t bytes)
{
    stingy.kind = transport_plain;
    stingy.kind.send = stingy_send;
    stingy.allowance = bytes;
    t->kind = &stingy.kind;
}

#endif
