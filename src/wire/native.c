/* SPDX-License-Identifier: MIT */
/*
 * The strategies of servers that do it in one command: SET NX PX; SET IFEQ
 * (Valkey 8.1, Redis 8.4), DELEX IFEQ (Redis 8.4), DELIFEQ (Valkey 9.0).
 * Invariant: the command that changes the key is the one that compares. DELEX
 * without a condition is DEL: it is never formatted with less than four
 * arguments.
 */
#include "wire/strategy.h"

#include "base/guard.h"

static unsigned native_one(bool ok)
{
    return ok ? 1 : 0;
}

/* Appended and not followed by what belongs to it. */
static unsigned native_take_back(struct buf *out, size_t before)
{
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

unsigned native_set(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    size_t before = buf_len(out);

    if (!command_verb(out, verb, x->kept ? &x->kept->verb[verb->kind] : NULL))
        return 0;
    if (!verb->want_left)
        return 1;
    return command_on_key(out, "PTTL", verb->key)
               ? 2
               : native_take_back(out, before);
}

/* The reply to PTTL after SET: it adds to the outcome and never decides. */
static enum exchange_next native_left_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer >= -2) {
        if (x->outcome.kind == OUTCOME_BUSY)
            x->outcome.left_ms = strategy_left(reply->integer);
    } else if (reply->kind != REPLY_ERROR) {
        return strategy_broken(x, "expected a number in reply to PTTL");
    }
    return EXCHANGE_DONE;
}

enum exchange_next native_acquired(
    struct exchange *x, const struct reply *reply)
{
    if (x->due == 0 && x->verb->want_left)
        return native_left_replied(x, reply);
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_NIL)
        strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        strategy_refused(x, reply);
    else
        strategy_broken(x, "expected OK or nil in reply to SET NX");
    if (x->due > 0)
        return EXCHANGE_WAIT;
    return EXCHANGE_DONE;
}

/* ------------------------------------------------------------------ extend */

enum { READ_LEFT, SET };

/* SET replaces the TTL, and may be applied after a SET of another extend of the
 * same token: by a renewal, by another process that adopted it, or late from a
 * lost connection. So it never sends less than any of these may have promised:
 * the most that an extend may ask for. PTTL is asked first for a key that was
 * given more, or no end, from outside. */
unsigned native_set_ifeq(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;

    if (x->step == READ_LEFT)
        return native_one(command_on_key(out, "PTTL", verb->key));
    return native_one(command_set_ifeq(out, verb, x->read));
}

static enum exchange_next native_left_read(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return strategy_refused(x, reply);
    if (reply->kind != REPLY_INTEGER || reply->integer < -2)
        return strategy_broken(x, "expected a number in reply to PTTL");
    const struct verb *verb = x->verb;
    int64_t ttl = verb->ttl_ms;
    if (verb->most_ttl_ms > verb->ttl_ms && guarded(GUARD_SHORTEN))
        ttl = verb->most_ttl_ms;
    /* No end (-1), or no key before 2.8, stays as it is; SET tells which. */
    x->read = reply->integer == -1   ? LEFT_FOREVER
              : reply->integer > ttl ? reply->integer
                                     : ttl;
    x->step = SET;
    return EXCHANGE_AGAIN;
}

/* The reply to SET IFEQ; left_ms: the TTL that it set, if that matters. */
static enum exchange_next native_set_replied(
    struct exchange *x, const struct reply *reply, int64_t left_ms)
{
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        return strategy_decide(x, OUTCOME_MINE, left_ms);
    if (reply->kind == REPLY_NIL)
        return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return strategy_refused(x, reply);
    return strategy_broken(x, "expected OK or nil in reply to SET IFEQ");
}

enum exchange_next native_extended(
    struct exchange *x, const struct reply *reply)
{
    return x->step == READ_LEFT ? native_left_read(x, reply)
                                : native_set_replied(x, reply, x->read);
}

/* -------------------------------------------------------------------- keep */

/* The holder is done, so unlike an extend this sets just what is left of
 * min_hold_ms, even if that shortens the TTL. */
unsigned native_keep(struct exchange *x, struct buf *out)
{
    return native_one(command_set_ifeq(out, x->verb, x->verb->ttl_ms));
}

enum exchange_next native_kept(struct exchange *x, const struct reply *reply)
{
    return native_set_replied(x, reply, LEFT_UNKNOWN);
}

/* ----------------------------------------------------------------- release */

unsigned native_delex(struct exchange *x, struct buf *out)
{
    return native_one(command_delex(out, x->verb));
}

unsigned native_delifeq(struct exchange *x, struct buf *out)
{
    return native_one(command_delifeq(out, x->verb));
}

enum exchange_next native_released(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_INTEGER && reply->integer == 0)
        return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return strategy_refused(x, reply);
    return strategy_broken(x, "expected 1 or 0 of a compare-and-delete");
}

/* ----------------------------------------------------------------- inspect */

/* The time before the value: a token that is there when its value is read was
 * there when its time was, for it was set before it could be asked for. EXISTS
 * tells an empty value from none; it comes last, as in the script. */
unsigned native_read(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    size_t before = buf_len(out);

    if (command_on_key(out, "PTTL", key) && command_getrange(out, key) &&
        command_on_key(out, "EXISTS", key))
        return 3;
    return native_take_back(out, before);
}

enum exchange_next native_inspected(
    struct exchange *x, const struct reply *reply)
{
    if (!strategy_open(x))
        ; /* what follows a refusal says nothing more */
    else if (reply->kind == REPLY_ERROR)
        strategy_refused(x, reply);
    else if (x->due == 2 && reply->kind == REPLY_INTEGER &&
             reply->integer >= -2)
        x->read = reply->integer;
    else if (x->due == 1 && reply->kind == REPLY_STRING)
        strategy_keep_value(x, reply->bytes);
    else if (x->due == 1)
        strategy_broken(x, "expected a string in reply to GETRANGE");
    else if (x->due == 2 || reply->kind != REPLY_INTEGER)
        strategy_broken(x, "expected a number in reply to PTTL or EXISTS");
    else if (reply->integer == 0)
        strategy_absent(x);
    else
        return strategy_seen(x, strategy_value(x), strategy_left(x->read));
    return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
}
