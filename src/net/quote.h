/* SPDX-License-Identifier: MIT */
/*
 * The words of a peer, for messages.
 *
 * Invariant: text that came from a peer gets into a message only by one of
 * these functions, which hide the client's own passwords and all tokens.
 */
#ifndef NXLOCK_NET_QUOTE_H
#define NXLOCK_NET_QUOTE_H

#include "net/state.h"

/* s->why becomes the text of a reply; cut: it was longer. */
void quote_reply(struct server *s, struct slice bytes, bool cut);

/* s->why becomes what the server said when it refused the login. */
void quote_refusal(struct server *s);

/* s->why becomes why the reader cannot go on, and the bytes it stopped at. */
void quote_garbage(struct server *s);

/* The words of a fault become ones that may be shown; valid until the next
 * outcome of this server. */
void quote_outcome(struct server *s, struct outcome *outcome);

#endif
