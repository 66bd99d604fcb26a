/* SPDX-License-Identifier: MIT */
/*
 * Keeps a client's secrets out of what is shown. A peer that is not a Redis
 * server, or a proxy, may repeat what it was sent.
 *
 * Invariant: text from a peer reaches a message only through redact_add(),
 * except the names in its certificate, and what other clients have stored at a
 * key: a holder's token, or the record of work.
 *
 * One rule: if REDACT_RUN bytes in a row of a password occur in a text, the
 * text is omitted as a whole; of a shorter password, all of it. The passwords
 * are those of all of the client's servers, in use and the ones before them.
 * These forms of a byte count: as it is, in either case of a letter; %XX and,
 * for a space, '+', as in a URL; \xXX, \uXXXX, \OOO, \n and the like, as in
 * C, JSON and Redis's own quotes. Our own words around a text always stay.
 */
#ifndef NXLOCK_BASE_REDACT_H
#define NXLOCK_BASE_REDACT_H

#include "base/text.h"

/* The present password and the one before it, of the two connections to a
 * server and of each of its 33 Sentinels at most: 2 * (2 + 33); and one that a
 * callback has just written. api/client.c checks it. */
#define SECRETS_MAX 71
#define REDACT_RUN 4

/* What is shown instead. */
#define REDACTED_SECRET "(text omitted: it may contain part of a password)"
#define REDACTED_TOKEN "(text omitted: it contains a lock's token)"

/* Passwords that others own, and may replace. */
struct secrets {
    size_t count;
    const struct slice *password[SECRETS_MAX];
};

/* password must outlive the secrets; it may be empty at times. Those beyond
 * SECRETS_MAX are ignored. */
void secrets_add(struct secrets *secrets, const struct slice *password);

/* Must a text not be shown because of the passwords? The time grows with the
 * length of the text and that of the passwords, not with their product. A text
 * that is too long to be examined must not be shown either. */
bool secrets_occur(const struct secrets *secrets, struct slice text);

/* Adds at most `most` bytes of the peer's text, or why it is omitted: for a
 * password or for what has the shape of a lock's token, whoever owns it. If
 * secrets is NULL, only tokens count. */
void redact_add(struct text *t, struct slice bytes, size_t most,
    const struct secrets *secrets);

#endif
