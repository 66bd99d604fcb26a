/* SPDX-License-Identifier: MIT */
/*
 * Acquiring with a fencing number: one script that raises the name's counter
 * and sets the key, so that the order of the numbers is the order of the
 * grants; and, over several servers, one that raises the counter to the number
 * of the grant. Invariant: there is no other way; without scripts there is no
 * number, and no lock that was asked for with one.
 *
 * To replace a value whose lock is over (PHASE_CHECK_VALUE) is the same script,
 * which then also takes a key with that very value.
 */
#include "wire/strategy.h"

#include "wire/classify.h"

enum { BY_HASH, WHOLE };

/* An unused counter expires, but only after any lock that was granted with its
 * number, by whatever clock. */
#define KEEP_LEAST_MS (UINT64_C(24) * 60 * 60 * 1000)

static uint64_t fenced_keep_ms(const struct exchange *x)
{
    uint64_t twice = UINT64_C(2) * x->dialect->max_ttl_ms;

    return twice > KEEP_LEAST_MS ? twice : KEEP_LEAST_MS;
}

/* In the place of a value that is over: see strategy.h. */
static bool fenced_replaces(const struct exchange *x)
{
    return x->phase == PHASE_CHECK_VALUE;
}

static bool fenced_asks_left(const struct exchange *x)
{
    return x->verb->kind == VERB_ACQUIRE && x->verb->want_left &&
           !fenced_replaces(x);
}

unsigned fenced_encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    struct slice old =
        fenced_replaces(x) ? strategy_value(x) : (struct slice){NULL, 0};
    size_t before = buf_len(out);

    x->read = BY_HASH;
    if (command_fence(out, verb, x->step == WHOLE, fenced_keep_ms(x), old) &&
        (!fenced_asks_left(x) || command_on_key(out, "PTTL", verb->key)))
        return 1U + fenced_asks_left(x);
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* The first reply, with or without another one behind it. */
static void fenced_judge(struct exchange *x, const struct reply *reply)
{
    bool raise = x->verb->kind == VERB_RAISE;

    if (reply->kind == REPLY_INTEGER && reply->integer > 0) {
        x->outcome.fence = (uint64_t)reply->integer;
        strategy_decide(
            x, raise ? OUTCOME_MINE : OUTCOME_GRANTED, LEFT_UNKNOWN);
    } else if (raise && reply->kind == REPLY_INTEGER && reply->integer == 0) {
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (!raise && reply->kind == REPLY_NIL) {
        strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    } else if (reply->kind == REPLY_ERROR) {
        strategy_refused(x, reply);
    } else {
        strategy_broken(x, "expected a number or nil of a fence script");
    }
}

enum exchange_next fenced_reply(struct exchange *x, const struct reply *reply)
{
    bool left = fenced_asks_left(x) && x->due == 0;

    if (!left && x->step == BY_HASH && reply->kind == REPLY_ERROR &&
        error_is_noscript(reply->bytes))
        x->read = WHOLE; /* once more, with its text */
    else if (!left)
        fenced_judge(x, reply);
    else if (reply->kind == REPLY_INTEGER && x->outcome.kind == OUTCOME_BUSY)
        x->outcome.left_ms = strategy_left(reply->integer);
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (x->step == BY_HASH && x->read == WHOLE) {
        x->step = WHOLE;
        return EXCHANGE_AGAIN;
    }
    return EXCHANGE_DONE;
}

const struct strategy fenced_strategy = {
    .name = "fence script", .encode = fenced_encode, .reply = fenced_reply};
