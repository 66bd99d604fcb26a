/* SPDX-License-Identifier: MIT */
/*
 * What a lock handle needs for its name: the key, the keys and commands that
 * are derived from it, what the servers answered about it, and the place in its
 * line. A handle has one name (of a handle of several, each member has one).
 *
 * Invariant: the key and the keys derived from it stay the same, and at the
 * same place in memory, as long as the handle: verbs and requests refer to
 * them.
 */
#ifndef NXLOCK_LOCK_NAME_H
#define NXLOCK_LOCK_NAME_H

#include "base/slice.h"
#include "base/text.h"
#include "core/machine.h"
#include "wire/command.h"

struct lock_name {
    struct slice key;
    struct slice counter;       /* the fencing token's key; empty: none */
    struct command_cache cache; /* formatted for this key */
    struct ballot *ballots;     /* of the lock's life, in the handle's memory */
    struct waiting *waiting;    /* NULL: it has never waited in line */
};

/* Makes the key of a prefix and a name, and the counter's if acquires draw a
 * fencing token. n is all zero but for the ballots. False: no memory. */
bool name_make(
    struct lock_name *n, struct slice prefix, struct slice name, bool fenced);
/* Frees what has been made, also by a name_make() that failed; not the wait,
 * which waiting_free() frees. */
void name_free(struct lock_name *n);
/* Begins a text that is about the name, without the client's prefix: "'a': ".
 */
void name_begin_text(
    const struct lock_name *n, struct slice prefix, struct text *text);

#endif
