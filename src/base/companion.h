/* SPDX-License-Identifier: MIT */
/*
 * Names the keys that accompany a lock's key: its fencing counter, its line and
 * the mark of the line. All have the same hash tag as the lock's key, so a
 * Redis Cluster keeps them together.
 */
#ifndef NXLOCK_BASE_COMPANION_H
#define NXLOCK_BASE_COMPANION_H

#include "base/slice.h"

#define COMPANION_COUNTER "f" /* the fencing counter, a number */
#define COMPANION_LINE "l"    /* who waits in line, a sorted set */
#define COMPANION_MARK "w"    /* exists while somebody may wait in line */

/* Does the key have a hash tag: something between its first '{' and the next
 * '}'? */
bool key_has_tag(struct slice key);

/* KEY:what, or {KEY}:what if the key has no hash tag. The caller frees
 * companion->data. False: no memory. */
bool companion_make(
    struct slice key, const char *what, struct slice *companion);

#endif
