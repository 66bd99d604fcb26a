/* SPDX-License-Identifier: MIT */
/*
 * An outcome is decided by the reply to the verb's own command and by nothing
 * else; a reply that cannot be its answer means that replies and commands do
 * not match any more, and then nothing may be concluded.
 */
#include "wire/exchange.h"

#include "wire/classify.h"

void exchange_begin(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept)
{
    x->verb = verb;
    x->kept = kept;
    x->step = 0;
    x->due = 0;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
}

unsigned exchange_encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    struct kept *kept = x->kept != NULL ? &x->kept->verb[verb->kind] : NULL;

    x->due = 0;
    if (x->step > 0) {
        if (command_verb_eval(out, verb))
            x->due = 1;
        return x->due;
    }
    size_t before = buf_len(out);
    if (!command_verb(out, verb, kept))
        return 0;
    if (verb->kind != VERB_ACQUIRE || !verb->want_left)
        return x->due = 1;
    if (!command_pttl(out, verb->key)) {
        buf_cut(out, before, buf_len(out) - before);
        return 0;
    }
    return x->due = 2;
}

static void decide(struct exchange *x, enum outcome_kind kind, int64_t left_ms)
{
    x->outcome.kind = kind;
    x->outcome.left_ms = left_ms;
}

static void fail(struct exchange *x, enum fault fault, struct slice text)
{
    x->outcome.kind = OUTCOME_FAULT;
    x->outcome.fault = fault;
    x->outcome.text = text;
}

/* The connection carries something else than the answers to our commands. */
static void break_off(struct exchange *x, const char *expected)
{
    fail(x, FAULT_NOT_REDIS, slice_of(expected));
    x->outcome.unsure = true;
}

static void refuse(struct exchange *x, const struct reply *reply)
{
    enum fault fault = classify_error(reply->bytes);
    const struct verb *verb = x->verb;

    /* A key of another type cannot hold our token: that is an answer. */
    if (fault == FAULT_WRONG_TYPE && verb->kind != VERB_ACQUIRE &&
        verb->token.len > 0) {
        decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        x->outcome.text = reply->bytes;
        return;
    }
    /* Not unsure: a refused command did nothing, and a script of ours writes
     * last. But words that no Redis server has may be a proxy's own, after it
     * had passed the command on. */
    fail(x, fault, reply->bytes);
    x->outcome.unsure = fault == FAULT_SERVER;
}

/* What PTTL says. -2 is a key that went away meanwhile. */
static int64_t left_of(int64_t pttl)
{
    return pttl >= 0 ? pttl : pttl == -1 ? LEFT_FOREVER : 0;
}

static void acquired(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_NIL)
        decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        refuse(x, reply);
    else
        break_off(x, "expected OK or nil in reply to SET NX");
}

/* The reply's bytes do not live until the next one. */
static void save_text(struct exchange *x)
{
    struct slice *text = &x->outcome.text;

    if (text->len == 0)
        return;
    if (text->len > sizeof x->words)
        text->len = sizeof x->words;
    memcpy(x->words, text->data, text->len);
    text->data = x->words;
}

/* The reply to PTTL after SET: it adds to the outcome and never decides. */
static void timed(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer >= -2) {
        if (x->outcome.kind == OUTCOME_BUSY)
            x->outcome.left_ms = left_of(reply->integer);
    } else if (reply->kind != REPLY_ERROR) {
        break_off(x, "expected a number in reply to PTTL");
    }
}

static void extended(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer >= -1)
        decide(x, OUTCOME_MINE, left_of(reply->integer));
    else if (reply->kind == REPLY_INTEGER && reply->integer == -2)
        decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        refuse(x, reply);
    else
        break_off(x, "expected milliseconds or -2 of the extend script");
}

static void released(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_INTEGER && reply->integer == 0)
        decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ERROR)
        refuse(x, reply);
    else
        break_off(x, "expected 1 or 0 of the release script");
}

static void seen(struct exchange *x, struct slice value, int64_t left_ms)
{
    struct slice token = x->verb->token;

    if (token.len == 0) {
        x->outcome.value = value;
        decide(x, OUTCOME_SEEN, left_ms);
    } else if (slice_equal(value, token)) {
        decide(x, OUTCOME_MINE, left_ms);
    } else {
        decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    }
}

static void inspected(struct exchange *x, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (reply->kind == REPLY_ERROR)
        refuse(x, reply);
    else if (reply->kind == REPLY_ARRAY && reply->count == 0)
        decide(x, x->verb->token.len > 0 ? OUTCOME_NOT_MINE : OUTCOME_FREE,
            LEFT_UNKNOWN);
    else if (reply->kind == REPLY_ARRAY && reply->count == 2 &&
             item[0].kind == REPLY_STRING && item[1].kind == REPLY_INTEGER &&
             item[1].integer >= -2)
        seen(x, item[0].bytes, left_of(item[1].integer));
    else
        break_off(x, "expected a value and its time of the inspect script");
}

enum exchange_next exchange_reply(struct exchange *x, const struct reply *reply)
{
    enum verb_kind kind = x->verb->kind;

    x->due--;
    if (kind == VERB_ACQUIRE) {
        if (x->due == 0 && x->verb->want_left) {
            timed(x, reply);
            return EXCHANGE_DONE;
        }
        acquired(x, reply);
        if (x->due == 0)
            return EXCHANGE_DONE;
        save_text(x);
        return EXCHANGE_WAIT;
    }
    if (reply->kind == REPLY_ERROR && x->step == 0 &&
        error_is_noscript(reply->bytes)) {
        x->step = 1;
        return EXCHANGE_AGAIN;
    }
    if (kind == VERB_EXTEND)
        extended(x, reply);
    else if (kind == VERB_RELEASE)
        released(x, reply);
    else
        inspected(x, reply);
    return EXCHANGE_DONE;
}
