/* SPDX-License-Identifier: MIT */
/*
 * The values of one reply, in the order in which they came, however deep they
 * were nested.
 *
 * Invariant: at most LEAVES_MOST bytes are stored; of a longer reply nothing is
 * stored, and full is set.
 */
#ifndef NXLOCK_BASE_LEAVES_H
#define NXLOCK_BASE_LEAVES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define LEAVES_MOST 1048576

struct leaf {
    size_t at, len;
    bool nil;
};

struct leaves {
    struct buf bytes; /* behind each a zero byte, not counted by its len */
    struct leaf *list;
    size_t count, room;
    bool full;    /* there was more than LEAVES_MOST */
    bool starved; /* there was no memory */
};

void leaves_add(struct leaves *l, struct slice value);
void leaves_add_number(struct leaves *l, int64_t number);
void leaves_add_nil(struct leaves *l);

/* Forgets all of it, for another reply. */
void leaves_clear(struct leaves *l);
void leaves_free(struct leaves *l);

#endif
