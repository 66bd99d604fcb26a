/* SPDX-License-Identifier: MIT */
/*
 * What the value of a lock's key says, in whichever form a strategy wrote it:
 * whose lock it is and, where the value and not the key's TTL tells that, until
 * when.
 */
#ifndef NXLOCK_WIRE_VALUE_H
#define NXLOCK_WIRE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* It was written for this token. */
bool value_is_of(struct slice value, struct slice token);

/* It tells when the lock is over: *end_s, a unix time. */
bool value_tells_end(struct slice value, int64_t *end_s);

/* The same, where the value has to be this token's or, if token is empty,
 * anybody's: with interop that of other programs, too. */
bool value_of_tells_end(struct slice value, struct slice token, bool interop);

#endif
