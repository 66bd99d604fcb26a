/* SPDX-License-Identifier: MIT */
/* A handshake whose replies the test gives, one by one. */
#ifndef NXLOCK_TESTS_HANDSHAKE_RIG_H
#define NXLOCK_TESTS_HANDSHAKE_RIG_H

#include "support/test.h"

#include "wire/handshake.h"
#include "wire/script.h"

static const struct handshake_terms nobody = {0};
static const struct handshake_terms secret = {.password = {"pw", 2}};
static const struct handshake_terms full = {
    .user = {"joe", 3}, .password = {"p\0w", 3}, .db = 12};

static inline struct reply words(enum reply_kind kind, const char *text)
{
    return (struct reply){.kind = kind, .bytes = slice_of(text)};
}

static inline struct reply integer(int64_t n)
{
    return (struct reply){.kind = REPLY_INTEGER, .integer = n};
}

static inline void begin(
    struct handshake *h, const struct handshake_terms *who, unsigned replies)
{
    struct buf out = {0};
    assert_int_equal(handshake_begin(h, who, &out), replies);
    buf_free(&out);
}

static inline void assert_waits(struct handshake *h, struct reply reply)
{
    enum fault fault = FAULT_NONE;
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_WAIT);
    assert_int_equal(fault, FAULT_NONE);
}

static inline void assert_fails(
    struct handshake *h, struct reply reply, enum fault expected)
{
    enum fault fault = FAULT_NONE;
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_FAILED);
    assert_int_equal(fault, expected);
}

#endif
