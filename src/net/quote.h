/* SPDX-License-Identifier: MIT */
/*
 * Puts text from a peer into messages.
 *
 * Invariant: the text of a reply gets into a message only by one of these
 * functions (a value that was stored, by redact_add()), which omit a text that
 * contains part of one of the client's passwords, or a token.
 */
#ifndef NXLOCK_NET_QUOTE_H
#define NXLOCK_NET_QUOTE_H

#include "net/state.h"

/* Sets s->why to the text of a reply. */
void quote_reply(struct server *s, struct slice bytes);

/* Adds it to s->why. */
void quote_add(struct server *s, struct slice bytes);

/* Sets s->why to what the server said when it refused the login. */
void quote_refusal(struct server *s);

/* Sets s->why to the reader's error and the bytes at which it stopped. */
void quote_garbage(struct server *s);

/* Replaces the text of a fault by one that may be shown; valid until the next
 * outcome of this server. */
void quote_outcome(struct server *s, struct outcome *outcome);

#endif
