/* SPDX-License-Identifier: MIT */
/*
 * Sends the command of a query (VERB_QUERY) unchanged and collects its answer.
 * Invariant: the collected values come from one reply, from its beginning. Only
 * the integers 1 and 0 are answers to a command that changes something.
 */
#include "wire/command.h"
#include "wire/strategy.h"

static unsigned query_encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;

    /* An earlier connection may have ended in the middle of the reply. */
    reply_values_clear(verb->values);
    return command_append(out, (int)verb->arg_count, verb->args);
}

static enum exchange_next query_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    if (!x->verb->changes)
        return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    if (reply->kind != REPLY_INTEGER || reply->integer < 0 ||
        reply->integer > 1)
        return strategy_bad_reply(x, "expected 1 or 0");
    return strategy_decide(
        x, reply->integer == 1 ? OUTCOME_MINE : OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

const struct strategy query_strategy = {
    .name = "query", .encode = query_encode, .reply = query_replied};
