/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: BEGIN, LOOK, TELL, FORGET and UNDO_BEGIN, each
 * one script and one round trip. Invariant: a server without scripts is
 * refused, because no other commands could replace them; each change of a
 * record is one comparison in one script, and an error proves that nothing was
 * changed.
 */
#include "wire/record.h"
#include "wire/strategy.h"

static unsigned begin_encode(struct exchange *x, struct buf *out)
{
    reply_values_clear(x->verb->values); /* of an earlier connection */
    return command_begin(out, x->verb, scripted_hand_over(x).text,
        scripted_as_text(x), fenced_counter_ttl_ms(x));
}

static unsigned tell_encode(struct exchange *x, struct buf *out)
{
    reply_values_clear(x->verb->values);
    return command_tell(out, x->verb, scripted_hand_over(x).text,
        scripted_as_text(x), verb_past_use(x->verb, x->dialect->now));
}

static unsigned undo_begin_encode(struct exchange *x, struct buf *out)
{
    return command_tell(
        out, x->verb, scripted_hand_over(x).text, scripted_as_text(x), false);
}

static unsigned forget_encode(struct exchange *x, struct buf *out)
{
    return command_forget(out, x->verb, scripted_as_text(x));
}

/* What a script answers: a code, a number and the record, if there is one. */
struct once_answer {
    int64_t code, number;
    bool has_record;
    struct record record;
};

/* False: the answer does not have this form. */
static bool once_read(const struct reply_values *l, struct once_answer *a)
{
    *a = (struct once_answer){0};
    if (!reply_values_number(l, 0, &a->code) ||
        !reply_values_number(l, 1, &a->number))
        return false;
    if (l->count == 2)
        return true;
    a->has_record = record_parse(reply_values_at(l, 2), &a->record);
    return a->has_record && l->count <= 4;
}

static enum exchange_next once_recorded(
    struct exchange *x, enum once_found found)
{
    x->outcome.found = found;
    return strategy_decide(x, OUTCOME_RECORDED, LEFT_UNKNOWN);
}

/* Is the result there that the record's line announces, all of it? */
static bool once_has_result(const struct exchange *x, const struct record *r)
{
    struct slice result = reply_values_at(x->verb->values, 3);

    return r->size < 0 ? !result.data
                       : result.data && result.len == (size_t)r->size;
}

static enum exchange_next once_begun(
    struct exchange *x, const struct once_answer *a)
{
    static const char expected[] = "expected an answer of the begin script";
    bool looks = x->verb->kind == VERB_READ_RECORD;
    int64_t left_ms = strategy_left_ms(a->number);

    if (a->code == FOUND_NOTHING && looks)
        return strategy_decide(x, OUTCOME_FREE, LEFT_UNKNOWN);
    if (a->code == FOUND_BUSY && a->number >= -2 && looks)
        return once_recorded(x, FOUND_BUSY);
    if (a->code == FOUND_BUSY && a->number >= -2)
        return strategy_decide(x, OUTCOME_BUSY, left_ms);
    if (!a->has_record)
        return strategy_bad_reply(x, expected);
    if (a->code == FOUND_BEGUN && a->number > 0 && a->number < EXACT_BELOW &&
        !looks) {
        x->outcome.fence = (uint64_t)a->number;
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    }
    if (a->code == FOUND_DONE && once_has_result(x, &a->record))
        return once_recorded(x, FOUND_DONE);
    if (a->code == FOUND_DOUBT)
        return once_recorded(x, FOUND_DOUBT);
    if (a->code == FOUND_MISMATCH)
        return once_recorded(x, FOUND_MISMATCH);
    return strategy_bad_reply(x, expected);
}

static enum exchange_next once_told(
    struct exchange *x, const struct once_answer *a)
{
    if (a->number < RELEASE_NOT_THERE || a->number > RELEASE_GAP ||
        a->code < 0 || a->code > 1)
        return strategy_bad_reply(x, "expected an answer of the tell script");
    if (a->number == RELEASE_NOT_ALLOWED)
        scripted_not_handed_over(x);
    return strategy_decide(
        x, a->code == 1 ? OUTCOME_MINE : OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

/* Reads the answer. False: it is none, which *next says. */
static bool once_answered(struct exchange *x, const struct reply *reply,
    struct once_answer *answer, enum exchange_next *next)
{
    const struct reply_values *l = x->verb->values;

    if (scripted_wants_text(x, reply))
        *next = EXCHANGE_AGAIN;
    else if (reply->kind == REPLY_ERROR)
        *next = strategy_error_or_not_mine(x, reply);
    else if (l->starved)
        *next = strategy_no_answer(x, FAULT_SYSTEM,
            slice_of("out of memory: cannot store the record"), true);
    else if (reply->kind != REPLY_ARRAY || reply->nested ||
             !once_read(l, answer))
        *next = strategy_bad_reply(x, "expected a code, a number and a record");
    else
        return true;
    return false;
}

static enum exchange_next begin_replied(
    struct exchange *x, const struct reply *reply)
{
    struct once_answer answer;
    enum exchange_next next;
    return once_answered(x, reply, &answer, &next) ? once_begun(x, &answer)
                                                   : next;
}

static enum exchange_next tell_replied(
    struct exchange *x, const struct reply *reply)
{
    struct once_answer answer;
    enum exchange_next next;
    return once_answered(x, reply, &answer, &next) ? once_told(x, &answer)
                                                   : next;
}

/* The reply to UNDO_BEGIN and FORGET: 1 or 0; -1: FORGET found work in
 * progress.
 */
static enum exchange_next removal_replied(
    struct exchange *x, const struct reply *reply)
{
    bool forgets = x->verb->kind == VERB_FORGET;

    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    if (reply->kind == REPLY_INTEGER && reply->integer == 1)
        return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
    if (reply->kind == REPLY_INTEGER && reply->integer == -1 && forgets)
        x->outcome.found = FOUND_BUSY;
    else if (reply->kind != REPLY_INTEGER || reply->integer != 0)
        return strategy_bad_reply(x, "expected 1, 0 or -1 from the script");
    return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

const struct strategy once_begin_strategy = {
    .name = "once scripts", .encode = begin_encode, .reply = begin_replied};
const struct strategy once_tell_strategy = {
    .name = "once scripts", .encode = tell_encode, .reply = tell_replied};
const struct strategy once_undo_begin_strategy = {.name = "once scripts",
    .encode = undo_begin_encode,
    .reply = removal_replied};
const struct strategy once_forget_strategy = {
    .name = "once scripts", .encode = forget_encode, .reply = removal_replied};
