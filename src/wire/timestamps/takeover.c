/* SPDX-License-Identifier: MIT */
/*
 * Takes over an abandoned lock of the timestamp scheme, after SET NX found a
 * key without a TTL. A holder of that scheme may have left it when it died,
 * before the server was upgraded or the scheme changed. Such a key would be
 * busy forever, so it is replaced once its time has passed by the server's
 * clock, which is read before the value. Invariant: exactly that value is
 * replaced, by compare-and-set, and never another kind of value. If anything
 * cannot be found out, the answer remains "busy". An acquire with a fencing
 * token replaces the value with its own script (fenced.c).
 */
#include "wire/timestamps/parts.h"

#include "model/guard.h"

enum { BY_SCRIPT, LOOK = STEP_READ_ONLY };

static enum exchange_next takeover_busy(struct exchange *x)
{
    return strategy_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
}

/* Does the acquire draw a fencing token? Then scripts work, because a script
 * gave the answer "busy". */
static bool takeover_draws(const struct exchange *x)
{
    return x->verb->counter.len > 0;
}

/* --------------------------------------------------- reading the old value */

enum { AFTER_LEFT, AFTER_VALUE, AFTER_TIME };

static unsigned takeover_encode_look(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    bool ok = command_word(out, "TIME") && command_getrange(out, key) &&
              command_on_key(out, "PTTL", key);
    return ok ? 3 : 0;
}

/* Decides about a value without a TTL by the server's clock (x->server_ms). */
static enum exchange_next takeover_judge(struct exchange *x)
{
    int64_t end_s;
    enum stamp_kind kind = stamp_parse(strategy_value(x), &end_s);

    if (kind == STAMP_NONE || x->server_ms <= 0 ||
        (kind == STAMP_FOREIGN && !x->dialect->interop))
        return takeover_busy(x);
    if (end_s * 1000 > x->server_ms)
        return strategy_decide(x, OUTCOME_BUSY, end_s * 1000 - x->server_ms);
    x->step = BY_SCRIPT;
    return EXCHANGE_AGAIN;
}

static enum exchange_next takeover_looked(
    struct exchange *x, const struct reply *reply)
{
    if (!strategy_undecided(x)) {
        return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
    } else if (x->due == AFTER_TIME) {
        x->server_ms = stamped_time(reply);
    } else if (x->due == AFTER_VALUE) {
        bool whole = reply->kind == REPLY_STRING && !reply->truncated;
        strategy_save_value(x, whole ? reply->bytes : slice_of(""));
    } else if (reply->kind == REPLY_INTEGER && reply->integer == -1) {
        return takeover_judge(x);
    } else { /* the key has a TTL now, or was deleted */
        bool ends = reply->kind == REPLY_INTEGER && reply->integer >= 0;
        return strategy_decide(
            x, OUTCOME_BUSY, ends ? reply->integer : LEFT_UNKNOWN);
    }
    return EXCHANGE_WAIT;
}

/* ---------------------------------------------------------- taking it over */

static enum exchange_next takeover_scripted(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_STATUS)
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    if (reply->kind == REPLY_NIL)
        return strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    if (reply->kind != REPLY_ERROR)
        return strategy_bad_reply(
            x, "expected OK or nil from the take-over script");
    if ((ON_REFUSED & 1U << classify_error(reply->bytes)) == 0)
        return strategy_error_or_not_mine(x, reply);
    x->step = STEP_WATCH;
    return EXCHANGE_AGAIN;
}

static unsigned takeover_encode_read(struct exchange *x, struct buf *out)
{
    return command_getrange(out, x->verb->key) &&
                   command_on_key(out, "PTTL", x->verb->key)
               ? 2
               : 0;
}

static void takeover_judge_read(struct exchange *x, const struct reply *reply)
{
    bool same = x->due == 2
                    ? reply->kind == REPLY_STRING && !reply->truncated &&
                          slice_equal(reply->bytes, strategy_value(x))
                    : reply->kind == REPLY_INTEGER && reply->integer == -1;
    if (!same)
        strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
}

static bool takeover_encode_set(struct exchange *x, struct buf *out)
{
    return command_psetex(out, x->verb);
}

static enum exchange_next takeover_was_set(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind != REPLY_STATUS)
        return strategy_bad_reply(x, "expected OK in reply to PSETEX");
    return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
}

static const struct watched takeover_watched = {takeover_encode_read,
    takeover_judge_read, takeover_encode_set, takeover_was_set};

/* ----------------------------------------------------------- the strategy */

static unsigned takeover_encode(struct exchange *x, struct buf *out)
{
    size_t before = buf_len(out);
    unsigned due;

    if (x->step >= STEP_WATCH)
        return watched_encode(x, out);
    if (x->step == LOOK)
        due = takeover_encode_look(x, out);
    else if (takeover_draws(x))
        due = fenced_encode(x, out);
    else if (guarded(GUARD_TAKE_OVER))
        due = command_takeover(out, x->verb, strategy_value(x)) ? 1 : 0;
    else
        due = command_psetex(out, x->verb) ? 1 : 0;
    if (due == 0)
        buf_cut(out, before, buf_len(out) - before);
    return due;
}

static enum exchange_next takeover_replied(
    struct exchange *x, const struct reply *reply)
{
    if (x->step == LOOK)
        return takeover_looked(x, reply);
    if (x->step == BY_SCRIPT && !takeover_draws(x))
        return takeover_scripted(x, reply);
    enum exchange_next next =
        takeover_draws(x) ? fenced_reply(x, reply) : watched_reply(x, reply);
    /* The take-over is not allowed: the answer is "busy", as without it. */
    if (next == EXCHANGE_DONE && x->outcome.kind == OUTCOME_FAULT &&
        !x->outcome.unsure && (ON_REFUSED & 1U << x->outcome.fault) != 0) {
        x->outcome = (struct outcome){.kind = OUTCOME_BUSY};
        return takeover_busy(x);
    }
    return next;
}

const struct strategy timestamps_takeover = {.name = "take-over",
    .encode = takeover_encode,
    .reply = takeover_replied,
    .watched = &takeover_watched};
