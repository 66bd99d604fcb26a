/* SPDX-License-Identifier: MIT */
/*
 * The strategies without a script or a transaction: SET NX PX to acquire, and
 * PTTL, GETRANGE and EXISTS to inspect.
 */
#include "wire/strategy.h"

#include "wire/classify.h"

/* Removes a command whose companion could not be appended. */
static unsigned native_undo_append(struct buf *out, size_t before)
{
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

unsigned native_set(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    size_t before = buf_len(out);

    if (!command_verb(out, &x->strategy->form, verb,
            command_cached(x->cache, verb->kind)))
        return 0;
    if (!verb->want_left)
        return 1;
    return strategy_append_left(x, out) ? 2 : native_undo_append(out, before);
}

/* By the script, or by PTTL alone. */
bool strategy_append_left(struct exchange *x, struct buf *out)
{
    x->asks_kind =
        x->verb->asks_kind && x->dialect->hold_back != HOLD_BACK_REFUSED;
    if (!x->asks_kind)
        return command_on_key(out, "PTTL", x->verb->key);
    return command_hold_back(out, x->verb,
        x->always_text || x->dialect->hold_back != HOLD_BACK_LOADED);
}

/* The reply of the script: {PTTL, whether several hold the lock}. */
static enum exchange_next kind_replied(
    struct exchange *x, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (reply->kind == REPLY_ERROR) {
        x->dialect->hold_back = error_is_noscript(reply->bytes)
                                    ? HOLD_BACK_UNKNOWN
                                    : HOLD_BACK_REFUSED;
    } else if (reply->kind == REPLY_ARRAY && reply->count == 2 &&
               item[0].kind == REPLY_INTEGER && item[0].integer >= -2 &&
               item[1].kind == REPLY_INTEGER) {
        x->dialect->hold_back = HOLD_BACK_LOADED;
        if (x->outcome.kind == OUTCOME_BUSY) {
            x->outcome.left_ms = strategy_left_ms(item[0].integer);
            x->outcome.several_holders = item[1].integer == 1;
        }
    } else {
        return strategy_bad_reply(x, "expected 2 numbers from the hold_back "
                                     "script");
    }
    return EXCHANGE_DONE;
}

enum exchange_next strategy_left_replied(
    struct exchange *x, const struct reply *reply)
{
    if (x->asks_kind)
        return kind_replied(x, reply);
    if (reply->kind == REPLY_INTEGER && reply->integer >= -2) {
        if (x->outcome.kind == OUTCOME_BUSY)
            x->outcome.left_ms = strategy_left_ms(reply->integer);
    } else if (reply->kind != REPLY_ERROR) {
        return strategy_bad_reply(x, "expected a number in reply to PTTL");
    }
    return EXCHANGE_DONE;
}

enum exchange_next native_acquired(
    struct exchange *x, const struct reply *reply)
{
    if (x->due == 0 && x->verb->want_left)
        return strategy_left_replied(x, reply);
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_NIL)
        strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else
        strategy_bad_reply(x, "expected OK or nil in reply to SET NX");
    if (x->due > 0)
        return EXCHANGE_WAIT;
    return EXCHANGE_DONE;
}

/* ----------------------------------------------------------------- inspect */

/* PTTL comes before GETRANGE: a token that is found by GETRANGE was there when
 * its TTL was read, because it was set before anybody could ask about it.
 * EXISTS distinguishes an empty value from no key; it comes last, as in the
 * script. */
unsigned native_read(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    size_t before = buf_len(out);

    if (command_on_key(out, "PTTL", key) && command_getrange(out, key) &&
        command_on_key(out, "EXISTS", key))
        return 3;
    return native_undo_append(out, before);
}

enum exchange_next native_inspected(
    struct exchange *x, const struct reply *reply)
{
    if (!strategy_undecided(x))
        ; /* already decided by an error; ignore the remaining replies */
    else if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (x->due == 2 && reply->kind == REPLY_INTEGER &&
             reply->integer >= -2)
        x->ttl = reply->integer;
    else if (x->due == 1 && reply->kind == REPLY_STRING)
        strategy_save_value(x, reply->bytes);
    else if (x->due == 1)
        strategy_bad_reply(x, "expected a string in reply to GETRANGE");
    else if (x->due == 2 || reply->kind != REPLY_INTEGER)
        strategy_bad_reply(x, "expected a number in reply to PTTL or EXISTS");
    else if (reply->integer == 0)
        strategy_absent(x);
    else
        return strategy_seen(x, strategy_value(x), strategy_left_ms(x->ttl));
    return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
}
