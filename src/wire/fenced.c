/* SPDX-License-Identifier: MIT */
/*
 * Acquiring with a fencing number: one script that raises the name's counter
 * and sets the key, so that the order of the numbers is the order of the
 * grants; and, over several servers, one that raises the counter to the number
 * of the grant. Keeps: there is no other way; without scripts there is no
 * number, and no lock that was asked for with one.
 */
#include "wire/rung.h"

#include "wire/classify.h"

enum { BY_HASH, WHOLE };

/* A counter that is not used any more ends by itself; but after any lock that
 * was granted with its number, by whatever clock. */
#define KEEP_LEAST_MS (UINT64_C(24) * 60 * 60 * 1000)

static uint64_t keep_ms(const struct exchange *x)
{
    uint64_t twice = UINT64_C(2) * x->ladder->max_ttl_ms;

    return twice > KEEP_LEAST_MS ? twice : KEEP_LEAST_MS;
}

static bool asks_left(const struct verb *verb)
{
    return verb->kind == VERB_ACQUIRE && verb->want_left;
}

static unsigned encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    size_t before = buf_len(out);

    x->read = BY_HASH;
    if (command_fence(out, verb, x->step == WHOLE, keep_ms(x)) &&
        (!asks_left(verb) || command_on_key(out, "PTTL", verb->key)))
        return 1U + asks_left(verb);
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* The first reply, with or without another one behind it. */
static void fenced(struct exchange *x, const struct reply *reply)
{
    bool raise = x->verb->kind == VERB_RAISE;

    if (reply->kind == REPLY_INTEGER && reply->integer > 0) {
        x->outcome.fence = (uint64_t)reply->integer;
        rung_decide(
            x, raise ? OUTCOME_MINE : OUTCOME_GRANTED, LEFT_UNKNOWN);
    } else if (raise && reply->kind == REPLY_INTEGER && reply->integer == 0) {
        rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (!raise && reply->kind == REPLY_NIL) {
        rung_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    } else if (reply->kind == REPLY_ERROR) {
        rung_refused(x, reply);
    } else {
        rung_broken(x, "expected a number or nil of a fence script");
    }
}

static enum exchange_next answered(
    struct exchange *x, const struct reply *reply)
{
    bool left = asks_left(x->verb) && x->due == 0;

    if (!left && x->step == BY_HASH && reply->kind == REPLY_ERROR &&
        error_is_noscript(reply->bytes))
        x->read = WHOLE; /* once more, with its text */
    else if (!left)
        fenced(x, reply);
    else if (reply->kind == REPLY_INTEGER &&
             x->outcome.kind == OUTCOME_BUSY)
        x->outcome.left_ms = rung_left(reply->integer);
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (x->step == BY_HASH && x->read == WHOLE) {
        x->step = WHOLE;
        return EXCHANGE_AGAIN;
    }
    return EXCHANGE_DONE;
}

const struct rung fenced_rung = {
    .name = "fence script", .encode = encode, .reply = answered};
