/* SPDX-License-Identifier: MIT */
/*
 * The rungs of servers that do it in one command: SET NX PX; SET IFEQ (Valkey
 * 8.1, Redis 8.4), DELEX IFEQ (Redis 8.4), DELIFEQ (Valkey 9.0). Keeps: the
 * command that changes the key is the one that compares. DELEX without a
 * condition is DEL: it is never formatted with less than four arguments.
 */
#include "wire/rung.h"

static unsigned one(bool ok)
{
    return ok ? 1 : 0;
}

/* Appended and not followed by what belongs to it. */
static unsigned take_back(struct buf *out, size_t before)
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
    return command_on_key(out, "PTTL", verb->key) ? 2 : take_back(out, before);
}

/* The reply to PTTL after SET: it adds to the outcome and never decides. */
static enum exchange_next timed(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer >= -2) {
        if (x->outcome.kind == OUTCOME_BUSY)
            x->outcome.left_ms = rung_left(reply->integer);
    } else if (reply->kind != REPLY_ERROR) {
        return rung_broken(x, "expected a number in reply to PTTL");
    }
    return x->outcome.kind == OUTCOME_BUSY ? rung_look_closer(x)
                                           : EXCHANGE_DONE;
}

enum exchange_next native_acquired(
    struct exchange *x, const struct reply *reply)
{
    if (x->due == 0 && x->verb->want_left)
        return timed(x, reply);
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        rung_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_NIL)
        rung_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else
        rung_broken(x, "expected OK or nil in reply to SET NX");
    if (x->due > 0)
        return EXCHANGE_WAIT;
    return x->outcome.kind == OUTCOME_BUSY ? rung_look_closer(x)
                                           : EXCHANGE_DONE;
}

/* ------------------------------------------------------------------ extend */

enum { READ_LEFT, SET };

/* SET can shorten a lease: so what is left is asked first. It only falls
 * until then, but for another handle that prolongs the same token. */
unsigned native_set_ifeq(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;

    if (x->step == READ_LEFT)
        return one(command_on_key(out, "PTTL", verb->key));
    return one(command_set_ifeq(out, verb, x->read));
}

static enum exchange_next left_read(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return rung_refused(x, reply);
    if (reply->kind != REPLY_INTEGER || reply->integer < -2)
        return rung_broken(x, "expected a number in reply to PTTL");
    int64_t ttl = x->verb->ttl_ms;
    /* No end (-1), or no key before 2.8, stays as it is; SET tells which. */
    x->read = reply->integer == -1 ? LEFT_FOREVER
              : reply->integer > ttl ? reply->integer : ttl;
    x->step = SET;
    return EXCHANGE_AGAIN;
}

enum exchange_next native_extended(
    struct exchange *x, const struct reply *reply)
{
    if (x->step == READ_LEFT)
        return left_read(x, reply);
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        return rung_decide(x, OUTCOME_MINE, x->read);
    if (reply->kind == REPLY_NIL)
        return rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return rung_refused(x, reply);
    return rung_broken(x, "expected OK or nil in reply to SET IFEQ");
}

/* ----------------------------------------------------------------- release */

unsigned native_delex(struct exchange *x, struct buf *out)
{
    return one(command_delex(out, x->verb));
}

unsigned native_delifeq(struct exchange *x, struct buf *out)
{
    return one(command_delifeq(out, x->verb));
}

enum exchange_next native_released(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        return rung_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_INTEGER && reply->integer == 0)
        return rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return rung_refused(x, reply);
    return rung_broken(x, "expected 1 or 0 of a compare-and-delete");
}

/* ----------------------------------------------------------------- inspect */

/* The time before the value: a token that stands when its value is read stood
 * when its time was, for it was set before anybody could ask. EXISTS tells an
 * empty value from none; it comes last, as in the script. */
unsigned native_read(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    size_t before = buf_len(out);

    if (command_on_key(out, "PTTL", key) && command_getrange(out, key) &&
        command_on_key(out, "EXISTS", key))
        return 3;
    return take_back(out, before);
}

enum exchange_next native_inspected(
    struct exchange *x, const struct reply *reply)
{
    if (!rung_open(x))
        ; /* what follows a refusal says nothing more */
    else if (reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else if (x->due == 2 && reply->kind == REPLY_INTEGER &&
             reply->integer >= -2)
        x->read = reply->integer;
    else if (x->due == 1 && reply->kind == REPLY_STRING)
        rung_keep_value(x, reply->bytes);
    else if (x->due == 1)
        rung_broken(x, "expected a string in reply to GETRANGE");
    else if (x->due == 2 || reply->kind != REPLY_INTEGER)
        rung_broken(x, "expected a number in reply to PTTL or EXISTS");
    else if (reply->integer == 0)
        rung_absent(x);
    else
        return rung_seen(x, rung_value(x), rung_left(x->read));
    return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
}
