/* SPDX-License-Identifier: MIT */
/*
 * Replies read a second time, plainly and all at once, to hold the reader
 * against: RESP2, with the limits that net/reader.h promises.
 */
#ifndef NXLOCK_TESTS_FUZZ_RESP_H
#define NXLOCK_TESTS_FUZZ_RESP_H

#include "wire/reply.h"

enum resp_result { RESP_REPLY, RESP_MORE, RESP_BROKEN };

/* The reply points into the bytes and into the items here. */
struct resp {
    struct reply reply;
    struct reply items[REPLY_ITEMS];
    size_t text; /* bytes of strings so far */
};

/* Reads one reply at bytes->data and moves bytes behind it. */
enum resp_result resp_read(struct resp *r, struct slice *bytes);

#endif
