/* SPDX-License-Identifier: MIT */
/*
 * Messages for people in a fixed array: always zero-ended, cut at the end,
 * control bytes of foreign origin made visible. No allocation, so an error
 * path cannot fail.
 */
#ifndef NXLOCK_BASE_TEXT_H
#define NXLOCK_BASE_TEXT_H

#include "base/slice.h"

#define TEXT_MAX 512

struct text {
    size_t len;
    char data[TEXT_MAX];
};

void text_clear(struct text *t);
void text_add(struct text *t, const char *words);
/* Foreign bytes: anything but printable ASCII becomes \xNN; at most 200
 * bytes of it are shown, and nothing of what a server repeats of a command's
 * arguments, which may be a password or a token. */
void text_add_foreign(struct text *t, struct slice bytes);
void text_addf(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* All of it that fits into size bytes, size > 0, zero-ended. */
void text_copy(const struct text *t, char *to, size_t size);

#endif
