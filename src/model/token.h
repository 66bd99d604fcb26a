/* SPDX-License-Identifier: MIT */
/*
 * The token of a holder: UUID[+WEIGHT/PERMITS][@LABEL], a random UUID in lower
 * case and what it asks for. One printable word. Without '+' it is an exclusive
 * lock, whose key has the token as its value; with it the holder is one of
 * several, members of a sorted set. PERMITS 0 is a shared lock: there is no
 * limit, and WEIGHT is 1. The UUID's version is 8 if the grant draws a fencing
 * token, else 4, so anyone who inspects the lock knows whether the counter
 * shows its fencing token. libuuid formats it; the bytes are drawn elsewhere,
 * because uuid_generate() is slow and reseeds the application's rand().
 */
#ifndef NXLOCK_MODEL_TOKEN_H
#define NXLOCK_MODEL_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define UUID_TEXT 36
#define LABEL_MAX 128
#define SHARE_MAX 22 /* "+2147483647/2147483647" */
#define TOKEN_MAX (UUID_TEXT + SHARE_MAX + 1 + LABEL_MAX)

#define PERMITS_MAX INT32_MAX

/* How a holder shares the lock with others; all zero: not at all. */
struct share {
    uint32_t weight;  /* permits that it takes; 0: it is exclusive */
    uint32_t permits; /* while it holds, no more are held in all; 0: no limit */
};

/* 1 ... most bytes of '!' ... '~'. */
bool word_valid(const char *word, size_t most);

/* Writes the part that all tokens of a lock have in common: a blank UUID, then
 * the share unless it is exclusive, then '@' and the label unless label is
 * NULL. out has TOKEN_MAX + 1 bytes and is zero-terminated. Returns the token's
 * length. */
size_t token_layout(char *out, struct share share, const char *label);

/* Writes the UUID made of 16 random bytes over the first UUID_TEXT bytes.
 * draws: its grant draws a fencing token. */
void token_write(char *token, const unsigned char random[16], bool draws);

/* Is it a token, exactly? */
bool token_valid(struct slice token);

/* The share of a token; all zero if it is exclusive, or no token. */
struct share token_share(struct slice token);

/* Has the token a share? token is one, or a value that was seen in its place.
 * It only looks at one byte, because every request asks for this. */
static inline bool token_has_share(struct slice token)
{
    return token.len > UUID_TEXT && token.data[UUID_TEXT] == '+';
}

/* The label: a pointer into token, after the '@'; NULL if it is not a token or
 * has no label. token must be followed by a zero byte. */
const char *token_label(struct slice token);

#endif
