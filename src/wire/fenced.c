/* SPDX-License-Identifier: MIT */
/*
 * Acquires with a fencing token: one script increments the name's counter and
 * sets the key, so the numbers are in the order of the grants. With several
 * servers, a second script raises the counter to the number of the grant; it
 * also draws the number of a lock that was handed over. A third one draws that
 * of a lock that several hold.
 * Invariant: there is no other strategy. Without scripts an acquire that asks
 * for a fencing token fails.
 *
 * The same script replaces a value whose time has passed
 * (EXCHANGE_PHASE_CHECK_VALUE): it then also accepts a key that has exactly
 * this value.
 */
#include "wire/strategy.h"

#include "wire/classify.h"

enum { BY_HASH, BY_TEXT };

/* An unused counter expires, but not before every lock that was granted with
 * its number has, whatever the clocks do. */
#define COUNTER_TTL_LEAST_MS (UINT64_C(24) * 60 * 60 * 1000)

uint64_t fenced_counter_ttl_ms(const struct exchange *x)
{
    uint64_t twice = UINT64_C(2) * x->dialect->max_ttl_ms;

    return twice > COUNTER_TTL_LEAST_MS ? twice : COUNTER_TTL_LEAST_MS;
}

/* Does it replace a value whose time has passed? */
static bool fenced_replaces(const struct exchange *x)
{
    return x->phase == EXCHANGE_PHASE_CHECK_VALUE;
}

static bool fenced_asks_left(const struct exchange *x)
{
    return x->verb->kind == VERB_ACQUIRE && x->verb->want_left &&
           !fenced_replaces(x);
}

static bool fenced_append(struct exchange *x, struct slice old, struct buf *out)
{
    bool with_text = x->verb->kind == VERB_ACQUIRE
                         ? scripted_acquires_as_text(x)
                         : scripted_as_text(x);
    uint64_t keep_ms = fenced_counter_ttl_ms(x);

    /* Several holders have one number, which is drawn after the grant. */
    if (x->shared)
        return command_shared_fence(out, x->verb, with_text, keep_ms);
    return command_fence(out, x->verb, with_text, keep_ms, old);
}

unsigned fenced_encode(struct exchange *x, struct buf *out)
{
    struct slice old =
        fenced_replaces(x) ? strategy_value(x) : (struct slice){NULL, 0};
    size_t before = buf_len(out);

    x->next_step = BY_HASH;
    if (fenced_append(x, old, out) &&
        (!fenced_asks_left(x) || strategy_append_left(x, out)))
        return 1U + fenced_asks_left(x);
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* The script's reply; another about the holder may follow. */
static void fenced_decide(struct exchange *x, const struct reply *reply)
{
    bool raise = x->verb->kind == VERB_RAISE;

    if (!raise)
        scripted_acquire_is_loaded(x);
    if (reply->kind == REPLY_INTEGER && reply->integer > 0 &&
        reply->integer < EXACT_BELOW) {
        x->outcome.fence = (uint64_t)reply->integer;
        strategy_decide(
            x, raise ? OUTCOME_MINE : OUTCOME_GRANTED, LEFT_UNKNOWN);
    } else if (raise && reply->kind == REPLY_INTEGER && reply->integer == 0) {
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (!raise && reply->kind == REPLY_NIL) {
        strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    } else if (reply->kind == REPLY_ERROR && x->verb->fence == 0) {
        /* It draws a number, and the counter may be of another type. */
        strategy_error_reply(x, reply);
    } else if (reply->kind == REPLY_ERROR) {
        strategy_error_or_not_mine(x, reply);
    } else {
        strategy_bad_reply(x, "expected a number or nil from the fence script");
    }
}

enum exchange_next fenced_reply(struct exchange *x, const struct reply *reply)
{
    bool left = fenced_asks_left(x) && x->due == 0;

    if (!left && x->step == BY_HASH && reply->kind == REPLY_ERROR &&
        error_is_noscript(reply->bytes))
        x->next_step = BY_TEXT; /* send it again with its text */
    else if (!left)
        fenced_decide(x, reply);
    else if (x->outcome.kind == OUTCOME_BUSY)
        strategy_left_replied(x, reply);
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (x->step == BY_HASH && x->next_step == BY_TEXT) {
        x->step = BY_TEXT;
        return EXCHANGE_AGAIN;
    }
    return EXCHANGE_DONE;
}

const struct strategy fenced_strategy = {
    .name = "fence script", .encode = fenced_encode, .reply = fenced_reply};
