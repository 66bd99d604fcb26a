/* SPDX-License-Identifier: MIT */
/*
 * Hides a client's secrets in text that came from a peer. A peer that is not a
 * Redis server, or a proxy, may repeat what it was sent.
 *
 * Invariant: text from a peer reaches a message only through redact_add().
 *
 * Hides the passwords of all of the client's servers, those in use and those
 * before them, also when the peer has escaped them (%XX, \xXX, &#NN;), and
 * everything that has the shape of a token, whoever owns it.
 */
#ifndef NXLOCK_BASE_REDACT_H
#define NXLOCK_BASE_REDACT_H

#include "base/text.h"

#define SECRETS_MAX 31

/* Passwords that others own, and may replace. */
struct secrets {
    size_t count;
    const struct slice *password[SECRETS_MAX];
};

/* password must outlive the secrets; it may be empty at times. Those beyond
 * SECRETS_MAX are ignored. */
void secrets_add(struct secrets *secrets, const struct slice *password);

/* Adds at most `most` bytes of the peer's text, with the secrets hidden. cut:
 * the text was truncated, so it may end within a secret. If secrets is NULL,
 * only tokens are hidden. */
void redact_add(struct text *t, struct slice bytes, bool cut, size_t most,
    const struct secrets *secrets);

#endif
