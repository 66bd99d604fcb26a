/* SPDX-License-Identifier: MIT */
/*
 * The timestamp scheme, for servers that cannot set a key together with its
 * TTL, and for sharing locks with programs that use it: SETNX and GETSET of a
 * value that is the unix time at which the lock ends. This is the only header
 * of the folder that others include: its strategies, the state that they store
 * with a connection and an exchange, and the meaning of a value.
 *
 * Invariant: no strategy of this folder replaces a value whose time may not
 * have passed yet by the server's clock, given what is uncertain about that
 * clock. Without WATCH, a value that was written too late is not deleted.
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
/* The same on servers without WATCH: only with scheme=timestamp. */
extern const struct strategy timestamps_acquire_unwatched;
extern const struct strategy timestamps_change_unwatched;
/* ACQUIRE with a token, after it found a key without a TTL: replaces an
 * abandoned lock of this scheme (takeover.c). */
extern const struct strategy timestamps_takeover;

/* ------------------------------------------------ state of a connection */

/* The server's clock as seen from here. */
struct server_clock {
    bool known;
    uint64_t read_at;  /* our clock when it was learnt, ns */
    int64_t offset_ms; /* to add to ours */
    int64_t margin_ms; /* how far that may be wrong either way */
};

struct timestamps_server {
    struct server_clock clock;
    bool learnt; /* timed and substr are known */
    bool timed;  /* it has TIME */
    bool substr; /* GETRANGE is called SUBSTR (before 2.4) */
};

/* -------------------------------------------------- state of an exchange */

struct timestamps_exchange {
    bool set;      /* SETNX has set the key */
    int64_t end_s; /* the time that was sent to be written */
};

/* ------------------------------------------------------ meaning of a value */

enum stamp_kind {
    STAMP_NONE,    /* not a time: it never passes */
    STAMP_FOREIGN, /* a time written by another program */
    STAMP_OURS     /* in the format of format.h, for any token */
};

/* Reads a value. It is a time if all of it is a decimal number from 1e9 to
 * below 1e11, with or without a fraction, as Python's time.time() gives it:
 * times in milliseconds are above that, and counters usually below.
 * *end_s is the first whole second at which the lock has ended. */
enum stamp_kind stamp_parse(struct slice value, int64_t *end_s);

/* Is the value in that format, and for this token? */
bool stamp_is_of(struct slice value, struct slice token);

#endif
