/* SPDX-License-Identifier: MIT */
/*
 * Names the keys that accompany a lock's key: its fencing counter, its line and
 * the mark of the line. All have the same hash tag as the lock's key, so a
 * Redis Cluster keeps them together.
 *
 * Invariant: no two locks share a line: the lock "K" has "{K}:nxl-l", the lock
 * "{K}" has "{K}::nxl-l". They may share a counter, whose numbers still grow.
 */
#ifndef NXLOCK_BASE_COMPANION_H
#define NXLOCK_BASE_COMPANION_H

#include "base/slice.h"

enum companion {
    COMPANION_COUNTER, /* the fencing counter, a number */
    COMPANION_LINE,    /* who waits in line, a sorted set */
    COMPANION_MARK     /* exists while somebody may wait in line */
};

/* Does the key have a hash tag: something between its first '{' and the next
 * '}'? */
bool key_has_tag(struct slice key);

/* {KEY}:f, :nxl-l or :nxl-w; if the key has a hash tag KEY:f, KEY::nxl-l or
 * KEY::nxl-w. The caller frees companion->data. False: no memory. */
bool companion_make(
    struct slice key, enum companion what, struct slice *companion);

#endif
