/* SPDX-License-Identifier: MIT */
/*
 * After SET NX met a key without an end: it may be a time that a holder of the
 * timestamp scheme left when it died, on a server that has been upgraded since
 * or at a client of another scheme. Then it is busy for ever, unless its time
 * is past by the server's clock, read before the value was. Keeps: only that
 * very value is replaced, by compare-and-set, and no other kind of value ever.
 * Whatever cannot be found out leaves the answer "busy".
 */
#include "wire/rung.h"

#include "base/deadline.h"
#include "base/guard.h"
#include "wire/classify.h"
#include "wire/timestamp.h"

enum { BY_SCRIPT, LOOK = STEP_ASK };

/* Between two looks of a waiter at a key without an end: it asks far more
 * often whether the name is free. */
#define LOOK_AGAIN NS_PER_S

static enum exchange_next busy(struct exchange *x)
{
    return rung_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
}

/* -------------------------------------------------------------- what it is */

enum { AFTER_LEFT, AFTER_VALUE, AFTER_TIME };

static unsigned encode_look(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    bool ok = command_word(out, "TIME") && command_getrange(out, key) &&
              command_on_key(out, "PTTL", key);
    return ok ? 3 : 0;
}

/* A value without an end, judged by the server's clock (x->read). */
static enum exchange_next judge(struct exchange *x)
{
    int64_t end_s;
    enum stamp_kind kind = stamp_parse(rung_value(x), &end_s);

    if (kind == STAMP_NONE || x->read <= 0 ||
        (kind == STAMP_FOREIGN && !x->ladder->interop))
        return busy(x);
    if (end_s * 1000 > x->read)
        return rung_decide(x, OUTCOME_BUSY, end_s * 1000 - x->read);
    x->step = BY_SCRIPT;
    return EXCHANGE_AGAIN;
}

static enum exchange_next looked(struct exchange *x, const struct reply *reply)
{
    if (x->due == AFTER_TIME) {
        x->read = rung_time(reply);
    } else if (x->due == AFTER_VALUE) {
        bool whole = reply->kind == REPLY_STRING && !reply->cut;
        rung_keep_value(x, whole ? reply->bytes : slice_of(""));
    } else if (reply->kind == REPLY_INTEGER && reply->integer == -1) {
        return judge(x);
    } else { /* it has got an end, or is gone */
        bool ends = reply->kind == REPLY_INTEGER && reply->integer >= 0;
        return rung_decide(
            x, OUTCOME_BUSY, ends ? reply->integer : LEFT_UNKNOWN);
    }
    return EXCHANGE_WAIT;
}

/* ---------------------------------------------------------- taking it over */

static enum exchange_next scripted(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_STATUS)
        return rung_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    if (reply->kind == REPLY_NIL)
        return rung_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    if (reply->kind != REPLY_ERROR)
        return rung_broken(x, "expected OK or nil of the take-over script");
    if ((ON_REFUSED & 1U << classify_error(reply->bytes)) == 0)
        return rung_refused(x, reply);
    x->step = STEP_WATCH;
    return EXCHANGE_AGAIN;
}

static unsigned read_again(struct exchange *x, struct buf *out)
{
    return command_getrange(out, x->verb->key) &&
                   command_on_key(out, "PTTL", x->verb->key)
               ? 2
               : 0;
}

static void judge_again(struct exchange *x, const struct reply *reply)
{
    bool same = x->due == 2
                    ? reply->kind == REPLY_STRING && !reply->cut &&
                          slice_equal(reply->bytes, rung_value(x))
                    : reply->kind == REPLY_INTEGER && reply->integer == -1;
    if (!same)
        rung_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
}

static bool set(struct exchange *x, struct buf *out)
{
    return command_psetex(out, x->verb);
}

static enum exchange_next was_set(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind != REPLY_STATUS)
        return rung_broken(x, "expected OK in reply to PSETEX");
    return rung_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
}

static const struct watched watched = {
    read_again, judge_again, set, was_set};

/* ---------------------------------------------------------------- the rung */

static unsigned encode(struct exchange *x, struct buf *out)
{
    size_t before = buf_len(out);
    unsigned due;

    if (x->step >= STEP_WATCH)
        return watched_encode(x, out);
    if (x->step == LOOK)
        due = encode_look(x, out);
    else if (guarded(GUARD_TAKE_OVER))
        due = command_takeover(out, x->verb, rung_value(x)) ? 1 : 0;
    else
        due = command_psetex(out, x->verb) ? 1 : 0;
    if (due == 0)
        buf_cut(out, before, buf_len(out) - before);
    return due;
}

static enum exchange_next answered(
    struct exchange *x, const struct reply *reply)
{
    if (x->step == LOOK)
        return looked(x, reply);
    if (x->step == BY_SCRIPT)
        return scripted(x, reply);
    enum exchange_next next = watched_reply(x, reply);
    /* Not allowed to: then it is as if nobody had looked. */
    if (next == EXCHANGE_DONE && x->outcome.kind == OUTCOME_FAULT &&
        !x->outcome.unsure && (ON_REFUSED & 1U << x->outcome.fault) != 0) {
        x->outcome = (struct outcome){.kind = OUTCOME_BUSY};
        return busy(x);
    }
    return next;
}

const struct rung takeover_rung = {.name = "take-over",
    .encode = encode,
    .reply = answered,
    .watched = &watched};

enum exchange_next rung_look_closer(struct exchange *x)
{
    uint64_t now = x->ladder->now;

    /* Only who waits has asked how long it is busy. */
    if (x->outcome.left_ms != LEFT_FOREVER || now < x->look_at)
        return EXCHANGE_DONE;
    x->look_at = deadline_after(now, LOOK_AGAIN);
    x->closer = true;
    x->step = LOOK;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
    return EXCHANGE_AGAIN;
}
