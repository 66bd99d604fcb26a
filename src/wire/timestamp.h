/* SPDX-License-Identifier: MIT */
/*
 * The value of a lock key on servers that cannot end a key in time: the unix
 * time in seconds at which the lock is over, as programs of the SETNX and
 * GETSET scheme write it, and behind the point 39 digits that are the token's
 * UUID as a decimal number. Who has the token knows the value again; who
 * knows only the scheme reads a time.
 */
#ifndef NXLOCK_WIRE_TIMESTAMP_H
#define NXLOCK_WIRE_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* "<11 digits>.<39 digits>" and the zero. */
#define STAMP_ROOM 52

/* What the seconds are of a lease that ends at end_ms: rounded up and one
 * more, for a reader whose clock knows whole seconds only. */
int64_t stamp_end(int64_t end_ms);

/* token is a valid one. Returns the length; 0: end_s is out of bounds. */
size_t stamp_format(char out[STAMP_ROOM], struct slice token, int64_t end_s);

enum stamp_kind {
    STAMP_NONE,    /* no time: it never passes */
    STAMP_FOREIGN, /* a time of the scheme, in whole seconds or a fraction */
    STAMP_OURS     /* in the format above, of whatever token */
};

/* A whole-string decimal from 1e9 to below 1e11 is a time: milliseconds are
 * above that, and an old program's counter is below. *end_s: the first whole
 * second at which it is over. */
enum stamp_kind stamp_parse(struct slice value, int64_t *end_s);

/* The value is in our format, and of this token. */
bool stamp_is_of(struct slice value, struct slice token);
/* ... or is the token itself. */
bool value_is_of(struct slice value, struct slice token);

#endif
