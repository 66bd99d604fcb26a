/* SPDX-License-Identifier: MIT */
/*
 * The values of a reply of any form, flattened: in the order received, whatever
 * the nesting.
 *
 * Invariant: at most LEAVES_MOST bytes are stored. Of a longer reply nothing is
 * stored, and `full` is set.
 */
#ifndef NXLOCK_BASE_LEAVES_H
#define NXLOCK_BASE_LEAVES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* A result of 1 MiB (NXL_ONCE_RESULT_MOST), and the rest of that reply. */
#define LEAVES_MOST (1048576 + 4096)

struct leaf {
    size_t at, len;
    bool nil;
};

struct leaves {
    struct buf bytes; /* each value has a zero byte behind it, not in len */
    struct leaf *list;
    size_t count, room;
    bool full;    /* the reply was longer than LEAVES_MOST: nothing is stored */
    bool starved; /* out of memory: nothing is stored */
};

void leaves_add(struct leaves *l, struct slice value);
void leaves_add_number(struct leaves *l, int64_t number);
void leaves_add_nil(struct leaves *l);

/* The i-th value, which a zero byte follows; data is NULL for nil, and where
 * there is none. Valid until another one is added. */
static inline struct slice leaves_at(const struct leaves *l, size_t i)
{
    if (i >= l->count || l->list[i].nil)
        return (struct slice){NULL, 0};
    return (struct slice){buf_head(&l->bytes) + l->list[i].at, l->list[i].len};
}

/* Empties it for another reply. */
void leaves_clear(struct leaves *l);
void leaves_free(struct leaves *l);

#endif
