/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads the members of a line: who waits there. A member is
 * "TOKEN CLIENT LEASE WINDOW"; a later version may add more. Its score is its
 * ticket times 2^22, plus the time of its last sign of life by the server's
 * clock, in ticks of 1/32 s, modulo 2^22. docs/wire.md has the whole form.
 *
 * Invariant: a waiter is read as dead exactly if the scripts pass it over
 * (wire/scripts/line.lua). A member that is no waiter is read as dead: the
 * scripts remove it.
 */
#ifndef NXLOCK_WIRE_WAITER_H
#define NXLOCK_WIRE_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct buf;
struct verb;

struct waiter {
    struct slice token; /* a part of the member; empty: it has none */
    int64_t silent_ms;  /* how long ago it last asked for the lock */
    bool dead;          /* longer ago than it said that it would */
};

/* Writes the member for the token of the verb. False: no memory. */
bool waiter_append(struct buf *out, const struct verb *verb);

/* The server's time in the ticks of the line; us: 0 to 999999. */
int64_t waiter_tick(int64_t s, int64_t us);

/* Reads a member and its score, as ZRANGE gives it. now: waiter_tick(). What is
 * no waiter is dead, such as a member without a window. */
void waiter_read(struct waiter *waiter, struct slice member, struct slice score,
    int64_t now);

#endif
