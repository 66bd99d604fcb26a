/* SPDX-License-Identifier: MIT */
/*
 * The value of a lock key: a random UUID in lower case, or UUID@label. One
 * printable word. The UUID's version is 8 if the grant draws a fencing token,
 * else 4, so anyone who inspects the lock knows whether the counter shows its
 * fencing token. libuuid formats it; the bytes are drawn elsewhere, because
 * uuid_generate() is slow and reseeds the application's rand().
 */
#ifndef NXLOCK_MODEL_TOKEN_H
#define NXLOCK_MODEL_TOKEN_H

#include <stdbool.h>

#include "base/slice.h"

#define UUID_TEXT 36
#define LABEL_MAX 128
#define TOKEN_MAX (UUID_TEXT + 1 + LABEL_MAX)

/* 1 ... most bytes of '!' ... '~'. */
bool word_valid(const char *word, size_t most);

/* Writes the part that all tokens of a lock share: a blank UUID, then '@' and
 * the label unless label is NULL. out has TOKEN_MAX + 1 bytes and is
 * zero-terminated. Returns the token's length. */
size_t token_layout(char *out, const char *label);

/* Writes the UUID made of 16 random bytes over the first UUID_TEXT bytes.
 * draws: its grant draws a fencing token. */
void token_write(char *token, const unsigned char random[16], bool draws);

/* UUID or UUID@label, exactly. */
bool token_valid(struct slice token);

/* The label: a pointer into token, after the '@'; NULL if it is not a token or
 * has no label. token must be followed by a zero byte. */
const char *token_label(struct slice token);

#endif
