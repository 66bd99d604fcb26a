/* SPDX-License-Identifier: MIT */
/*
 * The format of a value of the timestamp scheme: the unix time in seconds at
 * which the lock is over, as programs of the SETNX and GETSET scheme write it,
 * then the 128 bits of the token's UUID, each as a blank: a space is 0 and a
 * tab is 1. A program that has the token recognises the value; one that knows
 * only the scheme reads a number, whether by int(), float(), strtol() or the
 * shell's test: all of them skip blanks at the end.
 *
 * Earlier versions wrote SECONDS.DIGITS, the UUID as a decimal number of 39
 * digits, which int() refuses. Such values are still read.
 */
#ifndef NXLOCK_WIRE_TIMESTAMPS_FORMAT_H
#define NXLOCK_WIRE_TIMESTAMPS_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define STAMP_BLANKS 128
/* 11 digits, the blanks and the zero. */
#define STAMP_ROOM (11 + STAMP_BLANKS + 1)

/* What the seconds are of a lease that ends at end_ms: rounded up and one
 * more, for a reader whose clock knows whole seconds only. */
int64_t stamp_end(int64_t end_ms);

/* token is a valid one. Returns the length; 0: end_s is out of bounds. */
size_t stamp_format(char out[STAMP_ROOM], struct slice token, int64_t end_s);

#endif
