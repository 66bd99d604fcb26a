/* SPDX-License-Identifier: MIT */
/*
 * Names the keys that accompany a lock's key, and reads such names: its fencing
 * counter, its line, the mark and the gap of the line, the record of work that
 * must be done once, and the command's record of a periodic run. All have the
 * same hash tag as the lock's key, so a Redis Cluster keeps them together; but
 * not for a key with a '}' and no hash tag, which is refused there.
 *
 * Invariant: no two locks share a line or a record of work: the lock "K" has
 * "{K}:nxl-l", the lock "{K}" has "{K}::nxl-l". They may share a counter, whose
 * numbers still grow, and the record of a periodic run.
 */
#ifndef NXLOCK_MODEL_COMPANION_H
#define NXLOCK_MODEL_COMPANION_H

#include "base/slice.h"

enum companion {
    COMPANION_COUNTER,   /* the fencing counter, a number */
    COMPANION_LINE,      /* who waits in line, a sorted set */
    COMPANION_LINE_MARK, /* exists while somebody may wait in line; not the
                          * marker key of wire/marker.h */
    COMPANION_GAP,       /* exists while nobody in line is granted the lock */
    COMPANION_RECORD,    /* work that must be done once, a string */
    COMPANION_EVERY,     /* a run of the command with --every, itself a lock */
    COMPANIONS
};

/* Does the key have a hash tag: something between its first '{' and the next
 * '}'? An empty key, as a request without a key has, has none. */
bool key_has_tag(struct slice key);
/* Would a Redis Cluster keep the keys that accompany this one in another slot?
 * In "{a}b}:nxl-l", which accompanies "a}b", the hash tag is "a". */
bool key_is_apart(struct slice key);

/* {KEY}:f, :nxl-l, :nxl-w, :nxl-g, :once or :every; if the key has a hash tag
 * KEY:f, KEY::nxl-l, KEY::nxl-w, KEY::nxl-g, KEY::once or KEY:every. A zero
 * byte follows it. The caller frees companion->data. False: no memory. */
bool companion_make(
    struct slice key, enum companion what, struct slice *companion);

/* Is it a name that companion_make() makes? Then *what it is, and *key, a part
 * of it, is the lock's key; of "K" and "{K}", which share a counter, it is
 * "K". */
bool companion_of(
    struct slice companion, enum companion *what, struct slice *key);

/* The channel on which a client listens for one name: "nxl:", its UUID, ":" and
 * the key, in which blanks, control bytes and '%' are written as %XX. So
 * whoever may publish for one name cannot do so for another. Writes it to out
 * and returns its length. */
#define CHANNEL_KEY_MAX 512 /* a longer key has no channel */
#define CHANNEL_MAX (4 + 36 + 1 + 3 * CHANNEL_KEY_MAX)
size_t channel_name(char *out, const char *client, struct slice key);

#endif
