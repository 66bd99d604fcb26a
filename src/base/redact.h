/* SPDX-License-Identifier: MIT */
/*
 * Hides a client's secrets in text that came from a peer. A peer that is not a
 * Redis server, or a proxy, may repeat what it was sent.
 *
 * Invariant: text from a peer reaches a message only through redact_add().
 *
 * Hides the passwords of all of the client's servers, also when the peer has
 * escaped them (%XX, \xXX, &#NN;), and everything that has the shape of a
 * token, whoever owns it.
 */
#ifndef NXLOCK_BASE_REDACT_H
#define NXLOCK_BASE_REDACT_H

#include "base/text.h"

#define SECRETS_MAX 15

struct secrets {
    size_t count;
    struct slice password[SECRETS_MAX]; /* not owned */
};

/* Empty passwords and those beyond SECRETS_MAX are ignored. */
void secrets_add(struct secrets *secrets, struct slice password);

/* Adds at most `most` bytes of the peer's text, with the secrets hidden. cut:
 * the text was truncated, so it may end within a secret. If secrets is NULL,
 * only tokens are hidden. */
void redact_add(struct text *t, struct slice bytes, bool cut, size_t most,
    const struct secrets *secrets);

#endif
