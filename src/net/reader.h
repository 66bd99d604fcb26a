/* SPDX-License-Identifier: MIT */
/*
 * Parses bytes into replies, with hiredis' reader and our own object functions.
 * With every version of hiredis, replies allocate no memory, an array has at
 * most REPLY_ITEMS items and no arrays in it, and the backlog is limited. A
 * string longer than READER_TEXT is truncated and marked as such, because INFO
 * has no limit (a line for each database and each error code), and what matters
 * in it comes first. Anything else that is longer breaks the protocol, and the
 * connection can only be closed. The exception is a reply of any form, see
 * struct expected.
 */
#ifndef NXLOCK_NET_READER_H
#define NXLOCK_NET_READER_H

#include <stdbool.h>

#include "base/reply_values.h"
#include "wire/reply.h"

#define READER_TEXT 32768     /* bytes stored of the strings of one reply */
#define READER_BACKLOG 262144 /* bytes fed and not yet taken */
/* The backlog may be larger by this much while a string of at most this length
 * is incomplete: the parser returns a long INFO only as a whole. */
#define READER_STRING 1048576

struct reader;

struct reader *reader_new(void); /* NULL: no memory */
void reader_free(struct reader *r);

/* False: too much, or out of memory; reader_error() says which. Nothing can be
 * read after that, so take complete replies before feeding more. */
bool reader_feed(struct reader *r, const void *bytes, size_t len);

/* The last reply is returned so many times more before the next one. */
void reader_repeat(struct reader *r, unsigned times);

/* What the next reply may be. */
struct expected {
    /* It, or the rest of it, may have any form; then reader_next() returns only
     * its kind and the text of an error. */
    bool loose;
    struct reply_values *values; /* loose: where its values go; NULL: nowhere */
};

/* 1: *reply is the next one, valid until the next call on r. 0: incomplete. -1:
 * broken; reader_error() says why. */
int reader_next(
    struct reader *r, struct expected expected, const struct reply **reply);

/* Has everything that was fed been taken? Then no part of a reply is left. */
bool reader_idle(const struct reader *r);

/* Forgets everything, for a new connection. false: no memory. */
bool reader_reset(struct reader *r);

/* "" while nothing is wrong; never holds the peer's bytes. */
const char *reader_error(const struct reader *r);
/* The beginning of what reader_next() could not parse, as received; empty if
 * there was no such error. */
struct slice reader_head(const struct reader *r);
/* Did the reader fail for lack of memory, not because of the peer? */
bool reader_starved(const struct reader *r);

#endif
