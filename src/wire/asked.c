/* SPDX-License-Identifier: MIT */
/*
 * Sends the command of a query (VERB_QUERY) unchanged and collects its answer.
 * Invariant: the collected values come from one reply, from its beginning.
 */
#include "base/decimal.h"
#include "wire/strategy.h"

static bool asked_add_header(struct buf *out, char type, size_t number)
{
    struct decimal room;
    struct slice digits = decimal_of(&room, number);

    return buf_append(out, &type, 1) &&
           buf_append(out, digits.data, digits.len) &&
           buf_append(out, "\r\n", 2);
}

static bool asked_add_word(struct buf *out, struct slice word)
{
    return asked_add_header(out, '$', word.len) &&
           (word.len == 0 || buf_append(out, word.data, word.len)) &&
           buf_append(out, "\r\n", 2);
}

static unsigned asked_encode(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    size_t before = buf_len(out);
    bool ok = asked_add_header(out, '*', verb->word_count);

    /* An earlier connection may have ended in the middle of the reply. */
    leaves_clear(verb->leaves);
    for (size_t i = 0; ok && i < verb->word_count; i++)
        ok = asked_add_word(out, verb->words[i]);
    if (!ok)
        buf_cut(out, before, buf_len(out) - before);
    return ok;
}

static enum exchange_next asked_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return strategy_refused(x, reply);
    return strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN);
}

const struct strategy asked_strategy = {
    .name = "query", .encode = asked_encode, .reply = asked_replied};
