/* SPDX-License-Identifier: MIT */
/*
 * What the value of a lock's key means, whichever strategy wrote it: whose lock
 * it is and, if the value rather than the key's TTL says so, when it ends.
 */
#ifndef NXLOCK_WIRE_VALUE_H
#define NXLOCK_WIRE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Was the value written for this token? */
bool value_is_of(struct slice value, struct slice token);

/* Does the value contain the time at which the lock ends? Then *end_s is that
 * unix time. */
bool value_tells_end(struct slice value, int64_t *end_s);

/* The same for a value that must belong to this token or, if token is empty, to
 * any client of this library; with interop also to other programs. */
bool value_of_tells_end(struct slice value, struct slice token, bool interop);

/* How many bytes of a value that is no token may be shown to people: all, but
 * for a timestamp of this library, which has the token behind the time. */
size_t value_shown(struct slice value);

#endif
