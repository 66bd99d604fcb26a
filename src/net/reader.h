/* SPDX-License-Identifier: MIT */
/*
 * Bytes to replies, by hiredis' reader with our own object functions: no
 * reply allocates, an array holds REPLY_ITEMS items and no arrays, and what
 * is fed but not consumed is capped, on every hiredis version. Of a string
 * READER_TEXT bytes are kept; a longer one is cut there and says so, because
 * INFO has no limit (a line for each database, and for each error code) and
 * what matters in it comes first. Anything else beyond is a broken protocol,
 * after which the connection can only be closed. The exception is a reply that
 * was announced as one of any form, see reader_expect().
 */
#ifndef NXLOCK_NET_READER_H
#define NXLOCK_NET_READER_H

#include <stdbool.h>

#include "base/leaves.h"
#include "wire/reply.h"

#define READER_TEXT 32768     /* bytes of strings of one reply */
#define READER_BACKLOG 262144 /* fed, complete or not, and not yet taken */
/* That much more while a string is awaited whose length is known and at most
 * this: of a long INFO the parser wants to see all before it gives any. */
#define READER_STRING 1048576

struct reader;

struct reader *reader_new(void); /* NULL: no memory */
void reader_free(struct reader *r);

/* false: too much, or no memory; reader_error() tells. Nothing can be read
 * after that: replies that are complete are to be taken before more is fed. */
bool reader_feed(struct reader *r, const void *bytes, size_t len);

/* The reply that comes next, or the rest of it, may have any form (loose): its
 * values go to leaves, or nowhere when that is NULL, and reader_next() then
 * tells its kind and, of an error, its words, and nothing else of it. To be
 * said before each reader_next(). */
void reader_expect(struct reader *r, bool loose, struct leaves *leaves);

/* 1: *reply is the next one, valid until the next call on r. 0: incomplete.
 * -1: broken; reader_error() tells. */
int reader_next(struct reader *r, const struct reply **reply);

/* Everything that was fed has been taken: there is no reply and no part of
 * one. */
bool reader_idle(const struct reader *r);

/* Forgets everything, for a new connection. false: no memory. */
bool reader_reset(struct reader *r);

/* "" while nothing is wrong; never holds the peer's bytes. */
const char *reader_error(const struct reader *r);
/* The beginning of what reader_next() could not make a reply of, as it was
 * received; empty if there was no error. */
struct slice reader_head(const struct reader *r);
/* The reader failed for want of memory, not because of the peer. */
bool reader_starved(const struct reader *r);

#endif
