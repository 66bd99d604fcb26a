/* SPDX-License-Identifier: MIT */
/* Numbers as decimal text. Commands contain many: printf() would take longer
 * than all the rest of formatting them. */
#ifndef NXLOCK_BASE_DECIMAL_H
#define NXLOCK_BASE_DECIMAL_H

#include <stdint.h>

#include "base/slice.h"

/* Room for any number of 64 bits: at most DECIMAL_MAX bytes with the sign, and
 * no zero byte at the end. */
#define DECIMAL_MAX 20
struct decimal {
    char digits[DECIMAL_MAX];
};

/* Writes the number into room, and returns the text there. */
static inline struct slice decimal_of(struct decimal *room, uint64_t number)
{
    char *end = room->digits + sizeof(room->digits), *at = end;
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return (struct slice){at, (size_t)(end - at)};
}

static inline struct slice decimal_signed(struct decimal *room, int64_t number)
{
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    struct slice text = decimal_of(room, magnitude);
    if (number >= 0)
        return text;
    char *sign = room->digits + sizeof(room->digits) - text.len - 1;
    *sign = '-';
    return (struct slice){sign, text.len + 1};
}

#endif
