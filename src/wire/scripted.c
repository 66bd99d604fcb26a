/* SPDX-License-Identifier: MIT */
/*
 * Strategies that run a script: EVALSHA, and EVAL with the text if the server
 * does not have the script. Invariant: a script uses everything that may be
 * refused before its first write, so an error from a script proves that nothing
 * was done.
 */
#include "wire/strategy.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/companion.h"
#include "wire/classify.h"

enum { BY_HASH, BY_TEXT };

bool scripted_as_text(const struct exchange *x)
{
    return x->always_text || x->step == BY_TEXT;
}

bool scripted_acquires_as_text(struct exchange *x)
{
    bool *loaded = &x->dialect->acquire_loaded[x->shared];
    bool with_text =
        scripted_as_text(x) || (x->dialect->several_servers && !*loaded);

    *loaded = with_text; /* by its hash: not before the answer */
    return with_text;
}

void scripted_acquire_is_loaded(struct exchange *x)
{
    x->dialect->acquire_loaded[x->shared] = true;
}

struct hand_over_arg scripted_hand_over(const struct exchange *x)
{
    struct hand_over_arg arg = {""};
    if (x->dialect->no_line || x->dialect->several_servers ||
        x->dialect->now < x->hand_over_again)
        arg.text[0] = '-';
    else if (x->verb->gap_ms > 0)
        snprintf(arg.text, sizeof(arg.text), "?%" PRIu32, x->verb->gap_ms);
    else if (x->verb->has_waiters_behind)
        arg.text[0] = '+';
    return arg;
}

void scripted_not_handed_over(struct exchange *x)
{
    x->hand_over_again = deadline_after(x->dialect->now, REFUSAL_NS);
}

static bool scripted_append(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    struct hand_over_arg arg = scripted_hand_over(x);
    const struct command_form *form = &x->strategy->form;
    bool with_text = scripted_as_text(x) || x->strategy->is_as_text;

    if (verb->kind == VERB_RELEASE &&
        (*arg.text || verb->client.len > 0 || key_has_tag(verb->key)))
        return command_release(out, form, verb, arg.text, with_text);
    if (with_text)
        return command_verb_eval(out, form, verb);
    return command_verb(out, form, verb, command_cached(x->cache, verb->kind));
}

unsigned scripted_encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    bool asks_left = verb->want_left;
    size_t before = buf_len(out);

    bool ok = scripted_append(x, out);
    if (ok && asks_left && !strategy_append_left(x, out)) {
        buf_cut(out, before, buf_len(out) - before);
        ok = false;
    }
    return ok ? 1U + asks_left : 0;
}

/* The server does not have the script: send it again with its text. */
bool scripted_wants_text(struct exchange *x, const struct reply *reply)
{
    if (x->step != BY_HASH || x->always_text || reply->kind != REPLY_ERROR ||
        !error_is_noscript(reply->bytes))
        return false;
    x->step = BY_TEXT;
    return true;
}

enum exchange_next scripted_extended(
    struct exchange *x, const struct reply *reply)
{
    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_INTEGER && reply->integer >= -1)
        return strategy_decide(
            x, OUTCOME_MINE, strategy_left_ms(reply->integer));
    if (reply->kind == REPLY_INTEGER && reply->integer == -2)
        return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    return strategy_bad_reply(
        x, "expected milliseconds or -2 from the extend script");
}

enum exchange_next scripted_done_or_not_mine(
    struct exchange *x, const struct reply *reply)
{
    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_INTEGER && reply->integer == 0)
        return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    return strategy_bad_reply(
        x, "expected 1 or 0 from the script that compares the token");
}

enum exchange_next scripted_released(
    struct exchange *x, const struct reply *reply)
{
    bool in_line = x->verb->client.len > 0;
    int64_t number = reply->kind == REPLY_INTEGER ? reply->integer : -1;

    if (number == RELEASE_NOT_ALLOWED)
        scripted_not_handed_over(x);
    x->outcome.left_line = in_line && number == RELEASE_LEFT_LINE;
    if (number == RELEASE_GAP || number == RELEASE_HANDED_OVER ||
        number == RELEASE_NOT_ALLOWED || x->outcome.left_line)
        return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    return scripted_done_or_not_mine(x, reply);
}

unsigned scripted_inspect(struct exchange *x, struct buf *out)
{
    if (!x->verb->values)
        return scripted_encode(x, out);
    reply_values_clear(x->verb->values); /* of an earlier connection */
    return command_list(out, x->verb, scripted_as_text(x)) ? 1 : 0;
}

static const char expected_holder[] =
    "expected value and TTL from the inspect script";

/* The reply is stored: pairs of a value and what it has left. */
static enum exchange_next scripted_listed(
    struct exchange *x, const struct reply *reply)
{
    const struct reply_values *l = x->verb->values;
    int64_t left_ms;

    if (l->starved || l->full)
        return strategy_no_answer(x, FAULT_SYSTEM,
            slice_of("out of memory: cannot store the holders"), false);
    if (reply->kind != REPLY_ARRAY || reply->nested || l->count % 2 > 0)
        return strategy_bad_reply(x, expected_holder);
    if (l->count == 0)
        return strategy_absent(x);
    for (size_t i = 1; i < l->count; i += 2)
        if (!reply_values_number(l, i, &left_ms) || left_ms < -2)
            return strategy_bad_reply(x, expected_holder);
    reply_values_number(l, 1, &left_ms);
    return strategy_seen(x, reply_values_at(l, 0), strategy_left_ms(left_ms));
}

enum exchange_next scripted_inspected(
    struct exchange *x, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    if (strategy_stores_reply(x))
        return scripted_listed(x, reply);
    if (reply->kind == REPLY_ARRAY && reply->count == 0)
        return strategy_absent(x);
    if (reply->kind == REPLY_ARRAY && reply->count == 2 &&
        item[0].kind == REPLY_STRING && item[1].kind == REPLY_INTEGER &&
        item[1].integer >= -2)
        return strategy_seen(
            x, item[0].bytes, strategy_left_ms(item[1].integer));
    return strategy_bad_reply(x, expected_holder);
}

unsigned scripted_after(struct exchange *x, struct buf *out)
{
    x->names = x->name = 1;
    return command_acquire_after(out, &x->verb, 1, scripted_as_text(x)) ? 1 : 0;
}

enum exchange_next scripted_acquired_after(
    struct exchange *x, const struct reply *reply)
{
    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_INTEGER && reply->integer >= 0 &&
        reply->integer <= x->names)
        return strategy_decide(x,
            reply->integer >= x->name ? OUTCOME_GRANTED : OUTCOME_BUSY,
            LEFT_UNKNOWN);
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    return strategy_bad_reply(
        x, "expected how many names the script has acquired");
}
