/* SPDX-License-Identifier: MIT */
/*
 * A server's second connection, which listens to channels.
 *
 * Invariant: a message counts only after the confirmation of a subscription on
 * the same connection.
 */
#include "net/subscription.h"

void subscription_init(
    struct server *s, const struct server *like, uint64_t seed)
{
    server_init(s, &like->to, true, seed);
    s->listens = true;
    s->handshake_terms.brief = true;
    s->secrets = like->secrets;
    s->spares = like->spares;
    s->uses_sentinels = s->unlocated = like->uses_sentinels;
}

static bool is_text(const struct reply *reply, struct slice text)
{
    return reply->kind == REPLY_STRING && slice_equal(reply->bytes, text);
}

bool subscription_take(struct server *s, const struct reply *reply,
    struct completion *c, uint64_t now)
{
    bool taken = s->state == SERVER_UP && s->has_answered &&
                 reply->kind == REPLY_ARRAY && reply->count == 3 &&
                 is_text(&reply->items[0], slice_of("message")) &&
                 reply->items[1].kind == REPLY_STRING &&
                 reply->items[2].kind == REPLY_STRING;
    if (!taken)
        return false;
    s->heard_at = now;
    *c = (struct completion){NULL, {.kind = OUTCOME_SEEN,
                                       .left_ms = LEFT_UNKNOWN,
                                       .connection = s->connections,
                                       .value = reply->items[2].bytes,
                                       .text = reply->items[1].bytes}};
    return true;
}
