/* SPDX-License-Identifier: MIT */
/*
 * Names the keys that accompany a lock's key: its fencing counter, its line,
 * the mark of the line, and the record of work that must be done once. All have
 * the same hash tag as the lock's key, so a Redis Cluster keeps them together.
 *
 * Invariant: no two locks share a line or a record: the lock "K" has
 * "{K}:nxl-l", the lock "{K}" has "{K}::nxl-l". They may share a counter, whose
 * numbers still grow.
 */
#ifndef NXLOCK_BASE_COMPANION_H
#define NXLOCK_BASE_COMPANION_H

#include "base/slice.h"

enum companion {
    COMPANION_COUNTER, /* the fencing counter, a number */
    COMPANION_LINE,    /* who waits in line, a sorted set */
    COMPANION_MARK,    /* exists while somebody may wait in line */
    COMPANION_RECORD   /* work that must be done once, a string */
};

/* Does the key have a hash tag: something between its first '{' and the next
 * '}'? */
bool key_has_tag(struct slice key);

/* {KEY}:f, :nxl-l, :nxl-w or :once; if the key has a hash tag KEY:f,
 * KEY::nxl-l, KEY::nxl-w or KEY::once. The caller frees companion->data. False:
 * no memory. */
bool companion_make(
    struct slice key, enum companion what, struct slice *companion);

#endif
