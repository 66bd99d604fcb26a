/* SPDX-License-Identifier: MIT */
/*
 * The value of a lock key: a random UUID in lower case, or UUID@label. One
 * printable word. The UUID's version is 8 if the grant draws a fencing number,
 * else 4: so whoever looks at the lock knows whether the counter shows its
 * number. libuuid formats it; the bytes are drawn elsewhere, because
 * uuid_generate() is slow and reseeds the application's rand().
 */
#ifndef NXLOCK_BASE_TOKEN_H
#define NXLOCK_BASE_TOKEN_H

#include <stdbool.h>

#include "base/slice.h"

#define UUID_TEXT 36
#define LABEL_MAX 128
#define TOKEN_MAX (UUID_TEXT + 1 + LABEL_MAX)

/* 1 ... LABEL_MAX bytes of '!' ... '~'. */
bool label_valid(const char *label);

/* Lays down what stays the same over all tokens of a lock: room for the
 * UUID, and '@' and label unless label is NULL. out has TOKEN_MAX + 1 bytes
 * and is zero-ended. Returns the token's length. */
size_t token_layout(char *out, const char *label);

/* Writes the UUID made of 16 random bytes over the first UUID_TEXT bytes.
 * draws: a grant under it draws a fencing number. */
void token_write(char *token, const unsigned char random[16], bool draws);

/* UUID or UUID@label, exactly. */
bool token_valid(struct slice token);

/* The label in it: a pointer after '@', or NULL when it is not a token of
 * ours or has none. token is zero-ended at token.len. */
const char *token_label(struct slice token);

#endif
