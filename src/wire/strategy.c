/* SPDX-License-Identifier: MIT */
/*
 * The ways in which a strategy ends a step of its exchange. Invariant: an error
 * reply counts as a refusal only if it proves that nothing was done.
 */
#include "wire/strategy.h"

#include <stdlib.h>

#include "wire/classify.h"
#include "wire/value.h"

void dialect_begin(struct dialect *dialect)
{
    *dialect = (struct dialect){.ttl_in_values = dialect->ttl_in_values,
        .interop = dialect->interop,
        .no_line = dialect->no_line,
        .several_servers = dialect->several_servers,
        .max_ttl_ms = dialect->max_ttl_ms,
        .scripts_unverified = dialect->scripts_unverified,
        .connection = dialect->connection + 1};
}

enum exchange_next strategy_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms)
{
    x->outcome.kind = kind;
    x->outcome.left_ms = left_ms;
    return EXCHANGE_DONE;
}

enum exchange_next strategy_no_answer(
    struct exchange *x, enum fault fault, struct slice text, bool unsure)
{
    x->outcome = (struct outcome){.kind = OUTCOME_FAULT,
        .fault = fault,
        .text = text,
        .left_ms = LEFT_UNKNOWN,
        .unsure = unsure};
    return EXCHANGE_DONE;
}

enum exchange_next strategy_bad_reply(struct exchange *x, const char *expected)
{
    return strategy_no_answer(x, FAULT_NOT_REDIS, slice_of(expected), true);
}

enum exchange_next strategy_error_reply(
    struct exchange *x, const struct reply *reply)
{
    enum fault fault = classify_error(reply->bytes);

    return strategy_no_answer(
        x, fault, reply->bytes, fault_leaves_doubt(fault));
}

enum exchange_next strategy_error_or_not_mine(
    struct exchange *x, const struct reply *reply)
{
    const struct verb *verb = x->verb;

    if (!verb_traits[verb->kind].type_error_is_no || verb->token.len == 0 ||
        classify_error(reply->bytes) != FAULT_WRONG_TYPE)
        return strategy_error_reply(x, reply);
    x->outcome.text = reply->bytes;
    return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

uint16_t strategy_store(char **room, struct slice text)
{
    if (text.len == 0)
        return 0;
    if (!*room && !(*room = malloc(EXCHANGE_TEXT)))
        return 0;
    if (text.len > EXCHANGE_TEXT)
        text.len = EXCHANGE_TEXT;
    memcpy(*room, text.data, text.len);
    return (uint16_t)text.len;
}

void strategy_save_value(struct exchange *x, struct slice value)
{
    x->value_len = strategy_store(&x->stored, value);
    if (x->value_len == 0 && value.len > 0)
        strategy_no_answer(x, FAULT_SYSTEM,
            slice_of("out of memory: cannot store the key's value"), false);
}

struct slice strategy_value(const struct exchange *x)
{
    return (struct slice){x->stored ? x->stored : "", x->value_len};
}

/* A key without a TTL may have a value that contains its end. Then the exchange
 * continues and compares that with the server's clock. */
enum exchange_next strategy_seen(
    struct exchange *x, struct slice value, int64_t left_ms)
{
    struct slice token = x->verb->token;

    if ((token.len > 0 || left_ms == LEFT_FOREVER) &&
        value_of_tells_end(value, token, x->dialect->interop)) {
        x->phase = EXCHANGE_PHASE_CHECK_VALUE;
        return EXCHANGE_AGAIN;
    }
    if (token.len == 0) {
        x->outcome.value = value;
        return strategy_decide(x, OUTCOME_SEEN, left_ms);
    }
    return slice_equal(value, token)
               ? strategy_decide(x, OUTCOME_MINE, left_ms)
               : strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

enum exchange_next strategy_absent(struct exchange *x)
{
    return strategy_decide(x,
        x->verb->token.len > 0 ? OUTCOME_NOT_MINE : OUTCOME_FREE, LEFT_UNKNOWN);
}

int64_t strategy_left_ms(int64_t pttl)
{
    return pttl >= 0 ? pttl : pttl == -1 ? LEFT_FOREVER : 0;
}
