/* SPDX-License-Identifier: MIT */
/*
 * Listens to a channel (VERB_SUBSCRIBE): once, or again to see whether the
 * connection is alive. Messages are not replies and do not come here.
 * Invariant: decided only by the confirmation for this very channel.
 */
#include "wire/strategy.h"

static unsigned subscribed_encode(struct exchange *x, struct buf *out)
{
    const struct slice argv[] = {slice_of("SUBSCRIBE"), x->verb->key};

    return command_append(out, 2, argv);
}

static enum exchange_next subscribed_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    bool confirmed =
        reply->kind == REPLY_ARRAY && reply->count == 3 &&
        reply->items[0].kind == REPLY_STRING &&
        slice_equal(reply->items[0].bytes, slice_of("subscribe")) &&
        reply->items[1].kind == REPLY_STRING &&
        slice_equal(reply->items[1].bytes, x->verb->key) &&
        reply->items[2].kind == REPLY_INTEGER;
    return confirmed ? strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN)
                     : strategy_bad_reply(x, "unexpected reply to SUBSCRIBE");
}

const struct strategy subscribed_strategy = {.name = "SUBSCRIBE",
    .encode = subscribed_encode,
    .reply = subscribed_replied};
