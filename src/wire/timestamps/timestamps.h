/* SPDX-License-Identifier: MIT */
/*
 * The timestamp scheme, for servers that cannot set a key together with its
 * TTL, and for sharing locks with programs that use it: SETNX and GETSET of a
 * value that is the unix time at which the lock is over. This is the only
 * header of the folder that others include: its strategies, what they keep with
 * a connection and an exchange, and what a value says.
 *
 * Invariant: no strategy of this folder replaces a value whose time may still
 * be to come, by the server's clock and all doubt about it included; without
 * WATCH, what has been replaced too late is not deleted.
 */
#ifndef NXLOCK_WIRE_TIMESTAMPS_TIMESTAMPS_H
#define NXLOCK_WIRE_TIMESTAMPS_TIMESTAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct strategy;

/* -------------------------------------------------------------- strategies */

extern const struct strategy timestamps_acquire, timestamps_inspect;
extern const struct strategy timestamps_change; /* EXTEND, RELEASE */
/* The same on servers without WATCH: only if the client orders this scheme. */
extern const struct strategy timestamps_acquire_unwatched;
extern const struct strategy timestamps_change_unwatched;
/* ACQUIRE by a token, after it has met a key without a TTL: an abandoned lock
 * of this scheme is replaced, see takeover.c. */
extern const struct strategy timestamps_takeover;

/* ------------------------------------------ what they keep with a connection
 */

/* The server's clock as seen from here. */
struct server_clock {
    bool known;
    uint64_t read_at;  /* our clock when it was learnt, ns */
    int64_t offset_ms; /* to add to ours */
    int64_t margin_ms; /* how far that may be wrong either way */
};

struct timestamps_server {
    struct server_clock clock;
    bool learnt; /* the two that follow are known */
    bool timed;  /* it has TIME */
    bool substr; /* GETRANGE is SUBSTR there, before 2.4 */
};

/* --------------------------------------------- what they keep of an exchange
 */

struct timestamps_exchange {
    bool set;      /* SETNX has set the key */
    int64_t end_s; /* the time that was written, or sent to be */
};

/* ------------------------------------------------------- what a value says */

enum stamp_kind {
    STAMP_NONE,    /* no time: it never passes */
    STAMP_FOREIGN, /* a time of the scheme, in whole seconds or a fraction */
    STAMP_OURS     /* in one of the formats of format.h, of whatever token */
};

/* A whole-string decimal from 1e9 to below 1e11 is a time: milliseconds are
 * above that, and an old program's counter is below. *end_s: the first whole
 * second at which it is over. */
enum stamp_kind stamp_parse(struct slice value, int64_t *end_s);

/* The value is in one of our formats, and of this token. */
bool stamp_is_of(struct slice value, struct slice token);

#endif
