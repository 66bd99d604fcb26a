/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: JOIN and STAY by the wait script. Invariant: there is no
 * other strategy, and an error proves that the token has not joined. A
 * connection on which the script or one of its commands was refused remembers
 * that for a while. A refusal that may be about one name (its line is damaged,
 * or may not be touched) does not keep other names from waiting in line.
 */
#include "wire/classify.h"
#include "wire/strategy.h"

static unsigned line_encode(struct exchange *x, struct buf *out)
{
    return command_line_wait(out, x->verb, scripted_as_text(x)) ? 1 : 0;
}

static enum exchange_next line_refused(
    struct exchange *x, const struct reply *reply)
{
    struct dialect *dialect = x->dialect;
    enum exchange_next next = strategy_error_or_not_mine(x, reply);

    if (x->outcome.kind == OUTCOME_FAULT &&
        ON_REFUSED & 1U << x->outcome.fault) {
        dialect->line_refused = x->outcome.fault;
        dialect->line_again = error_refuses_command(reply->bytes)
                                  ? deadline_after(dialect->now, REFUSAL_NS)
                                  : 0;
    }
    return next;
}

static enum exchange_next line_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms)
{
    x->dialect->line_refused = FAULT_NONE;
    return strategy_decide(x, kind, left_ms);
}

/* More cannot be in a sorted set. */
#define MEMBERS_MAX UINT32_MAX

static bool line_has_numbers(const struct reply *reply)
{
    for (size_t i = 0; reply->kind == REPLY_ARRAY && i < reply->count; i++)
        if (reply->items[i].kind != REPLY_INTEGER)
            return false;
    return reply->kind == REPLY_ARRAY && reply->count > 0;
}

static enum exchange_next line_replied(
    struct exchange *x, const struct reply *reply)
{
    const struct verb *verb = x->verb;
    const struct reply *item = reply->items;

    if (scripted_wants_text(x, reply))
        return EXCHANGE_AGAIN;
    if (reply->kind == REPLY_ERROR)
        return line_refused(x, reply);
    bool numbers = line_has_numbers(reply);
    if (numbers && reply->count == 1 && item[0].integer == 1)
        return line_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    if (numbers && reply->count == 1 && item[0].integer == -1 &&
        verb->kind == VERB_STAY)
        return line_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (numbers && reply->count == 3U + verb->test_listener &&
        item[0].integer == 0 && item[1].integer >= -2 && item[2].integer >= 0 &&
        item[2].integer <= MEMBERS_MAX) {
        x->outcome.ahead = (unsigned)item[2].integer;
        x->outcome.no_listener = verb->test_listener && item[3].integer == 0;
        return line_decide(x, OUTCOME_BUSY, strategy_left_ms(item[1].integer));
    }
    return strategy_bad_reply(
        x, "expected 1 to 4 numbers from the wait script");
}

const struct strategy line_strategy = {
    .name = "wait script", .encode = line_encode, .reply = line_replied};
