/* SPDX-License-Identifier: MIT */
/*
 * The value of a lock in the timestamp scheme: the unix time in seconds at
 * which the lock ends, as programs of the SETNX and GETSET scheme write it,
 * then the 128 bits of the token's UUID, each as a blank: a space is 0 and a
 * tab is 1. A program that has the token recognises the value. One that only
 * knows the scheme reads a number, because int(), float(), strtol() and the
 * shell's test all skip blanks at the end.
 */
#ifndef NXLOCK_WIRE_TIMESTAMPS_FORMAT_H
#define NXLOCK_WIRE_TIMESTAMPS_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define STAMP_BLANKS 128
/* 11 digits, the blanks and a zero byte. */
#define STAMP_ROOM (11 + STAMP_BLANKS + 1)

/* The seconds to write for a lease that ends at end_ms: rounded up, plus one
 * for readers whose clock has only whole seconds. */
int64_t stamp_end(int64_t end_ms);

/* Writes the value; token must be valid. Returns the length; 0: end_s is out of
 * bounds. */
size_t stamp_format(char out[STAMP_ROOM], struct slice token, int64_t end_s);

#endif
