/* SPDX-License-Identifier: MIT */
/*
 * Messages for people, in a fixed array: always zero-terminated, truncated if
 * they are too long, with control bytes from outside made visible. Nothing is
 * allocated, so an error path cannot fail.
 */
#ifndef NXLOCK_BASE_TEXT_H
#define NXLOCK_BASE_TEXT_H

#include <stdint.h>

#include "base/slice.h"

#define TEXT_MAX 512
#define FOREIGN_MAX 200

struct text {
    size_t len;
    char data[TEXT_MAX];
};

void text_clear(struct text *t);
/* Replaces what is there. */
void text_set(struct text *t, const char *words);
void text_add(struct text *t, const char *words);
/* Adds untrusted bytes: anything but printable ASCII becomes \xNN, at most
 * FOREIGN_MAX bytes are shown, and nothing of a command's arguments that a
 * server repeats, which may be a password or a token. Text from a peer goes
 * through redact_add() instead. */
void text_add_foreign(struct text *t, struct slice bytes);
/* The same with another limit, but without removing repeated arguments. */
void text_add_foreign_raw(struct text *t, struct slice bytes, size_t most);
/* A server's text up to the place where it repeats a command's arguments. */
struct slice text_without_echo(struct slice bytes);
void text_addf(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A length of time as people write it, in one unit: "250ms", "4.2s", "90s",
 * "12m", "30h", "3d"; rounded up, or down if !up. */
void text_add_duration(struct text *t, uint64_t ms, bool up);
/* Copies as much as fits into size bytes (size > 0), zero-terminated. */
void text_copy(const struct text *t, char *to, size_t size);

#endif
