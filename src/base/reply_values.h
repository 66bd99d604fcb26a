/* SPDX-License-Identifier: MIT */
/*
 * The values of a reply of any form, flattened: in the order received, whatever
 * the nesting.
 *
 * Invariant: at most REPLY_VALUES_MAX bytes are stored. Of a longer reply
 * nothing is stored, and `full` is set.
 */
#ifndef NXLOCK_BASE_REPLY_VALUES_H
#define NXLOCK_BASE_REPLY_VALUES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* A result of 1 MiB (NXL_ONCE_RESULT_MAX), and the rest of that reply. */
#define REPLY_VALUES_MAX (1048576 + 4096)

struct value_range {
    size_t at, len;
    bool nil;
};

struct reply_values {
    struct buf bytes; /* each value has a zero byte behind it, not in len */
    struct value_range *list;
    size_t count, room;
    bool full; /* the reply was longer than REPLY_VALUES_MAX: nothing is stored
                */
    bool starved; /* out of memory: nothing is stored */
};

void reply_values_add(struct reply_values *l, struct slice value);
void reply_values_add_number(struct reply_values *l, int64_t number);
void reply_values_add_nil(struct reply_values *l);

/* The i-th value, which a zero byte follows; data is NULL for nil, and where
 * there is none. Valid until another one is added. */
static inline struct slice reply_values_at(
    const struct reply_values *l, size_t i)
{
    if (i >= l->count || l->list[i].nil)
        return (struct slice){NULL, 0};
    return (struct slice){buf_head(&l->bytes) + l->list[i].at, l->list[i].len};
}

/* Reads the number that the i-th value is; false: it is not one, or has more
 * than 18 digits. */
bool reply_values_number(
    const struct reply_values *l, size_t i, int64_t *number);

/* Empties it for another reply. */
void reply_values_clear(struct reply_values *l);
void reply_values_free(struct reply_values *l);

#endif
