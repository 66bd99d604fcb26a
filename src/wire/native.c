/* SPDX-License-Identifier: MIT */
/*
 * The strategies that need one command of the server: SET NX PX; SET IFEQ
 * (Valkey 8.1, Redis 8.4), DELEX IFEQ (Redis 8.4), DELIFEQ (Valkey 9.0).
 * Invariant: the command that changes the key also compares. DELEX without a
 * condition is DEL, so it is never formatted with fewer than four arguments.
 */
#include "wire/strategy.h"

#include "base/guard.h"

static unsigned one_reply(bool ok)
{
    return ok ? 1 : 0;
}

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

    if (!command_verb(out, verb, x->kept ? &x->kept->verb[verb->kind] : NULL))
        return 0;
    if (!verb->want_left)
        return 1;
    return command_on_key(out, "PTTL", verb->key)
               ? 2
               : native_undo_append(out, before);
}

/* The reply to PTTL after SET adds to the outcome but never decides it. */
static enum exchange_next native_left_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer >= -2) {
        if (x->outcome.kind == OUTCOME_BUSY)
            x->outcome.left_ms = strategy_left_ms(reply->integer);
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

/* SET replaces the TTL, and may be applied after the SET of another extend of
 * the same token: by a renewal, by another process that adopted it, or late
 * from a lost connection. So it always sends the longest TTL that any of these
 * may have promised, which is the most that an extend may ask for. PTTL is
 * asked first in case somebody gave the key a longer TTL, or none. */
unsigned native_set_ifeq(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;

    if (x->step == READ_LEFT)
        return one_reply(command_on_key(out, "PTTL", verb->key));
    return one_reply(command_set_ifeq(out, verb, x->read));
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
    /* -1 is a key without a TTL, which is kept so; before 2.8 also a missing
     * key, which SET IFEQ will report. */
    x->read = reply->integer == -1   ? LEFT_FOREVER
              : reply->integer > ttl ? reply->integer
                                     : ttl;
    x->step = SET;
    return EXCHANGE_AGAIN;
}

/* The reply to SET IFEQ; left_ms: the TTL that it set, or LEFT_UNKNOWN. */
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

/* --------------------------------------------- release before min_hold_ms */

/* The holder has finished, so unlike an extend this sets exactly the rest of
 * min_hold_ms, even if that shortens the TTL. */
unsigned native_keep(struct exchange *x, struct buf *out)
{
    return one_reply(command_set_ifeq(out, x->verb, x->verb->ttl_ms));
}

enum exchange_next native_kept(struct exchange *x, const struct reply *reply)
{
    return native_set_replied(x, reply, LEFT_UNKNOWN);
}

/* ----------------------------------------------------------------- release */

unsigned native_delex(struct exchange *x, struct buf *out)
{
    return one_reply(command_delex(out, x->verb));
}

unsigned native_delifeq(struct exchange *x, struct buf *out)
{
    return one_reply(command_delifeq(out, x->verb));
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
    return strategy_broken(x, "expected 1 or 0 from a compare-and-delete");
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
        strategy_refused(x, reply);
    else if (x->due == 2 && reply->kind == REPLY_INTEGER &&
             reply->integer >= -2)
        x->read = reply->integer;
    else if (x->due == 1 && reply->kind == REPLY_STRING)
        strategy_save_value(x, reply->bytes);
    else if (x->due == 1)
        strategy_broken(x, "expected a string in reply to GETRANGE");
    else if (x->due == 2 || reply->kind != REPLY_INTEGER)
        strategy_broken(x, "expected a number in reply to PTTL or EXISTS");
    else if (reply->integer == 0)
        strategy_absent(x);
    else
        return strategy_seen(x, strategy_value(x), strategy_left_ms(x->read));
    return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
}
