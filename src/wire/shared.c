/* SPDX-License-Identifier: MIT */
/*
 * ACQUIRE and INSPECT of a token that shares its lock with others: each one
 * script. Its other verbs are carried out by the scripts of an exclusive lock,
 * which read the kind of a lock from the token.
 *
 * Invariant: without scripts a shared lock is refused. No other commands could
 * compare how many permits are held and take some in one step.
 */
#include "wire/strategy.h"

static unsigned take_encode(struct exchange *x, struct buf *out)
{
    return command_take(out, x->verb, scripted_acquires_as_text(x)) ? 1 : 0;
}

static enum exchange_next take_replied(
    struct exchange *x, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    scripted_acquire_is_loaded(x);
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ARRAY && reply->count == 2 &&
        item[0].kind == REPLY_INTEGER && item[0].integer == 0 &&
        item[1].kind == REPLY_INTEGER && item[1].integer >= -2)
        return strategy_decide(
            x, OUTCOME_BUSY, strategy_left_ms(item[1].integer));
    return strategy_bad_reply(
        x, "expected 1, or 2 numbers, from the take script");
}

static unsigned inspect_encode(struct exchange *x, struct buf *out)
{
    static const struct command_form form = {
        .script = SCRIPT_INSPECT, .token = 4};
    bool ok = scripted_as_text(x) ? command_verb_eval(out, &form, x->verb)
                                  : command_verb(out, &form, x->verb, NULL);
    return ok ? 1 : 0;
}

const struct strategy shared_take = {
    .name = "take script", .encode = take_encode, .reply = take_replied};
const struct strategy shared_inspect = {
    .name = "scripts", .encode = inspect_encode, .reply = scripted_inspected};
