/* SPDX-License-Identifier: MIT */
/*
 * An outcome is decided by the reply to the verb's own command and by nothing
 * else; a reply that cannot be its answer means that replies and commands do
 * not match any more, and then nothing may be concluded. A rung is left for
 * the next only on an error which proves that nothing was done.
 */
#include "wire/exchange.h"

#include "wire/classify.h"
#include "wire/rung.h"

static void restart(struct exchange *x)
{
    x->ladder = NULL;
    x->tried = 0;
    x->step = 0;
    x->stuck = false;
    x->round = 0;
    x->first_len = 0;
    x->refused = FAULT_NONE;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
}

void exchange_begin(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept)
{
    x->verb = verb;
    x->kept = kept;
    x->rung = NULL;
    x->due = 0;
    x->whole = false;
    restart(x);
}

void exchange_hand_over(struct exchange *from, struct exchange *x,
    const struct verb *verb)
{
    exchange_begin(x, verb, NULL);
    x->ladder = from->ladder;
    x->connection = from->connection;
    x->rung = from->rung;
    x->at = from->at;
    x->step = from->step;
    x->due = from->due;
}

bool exchange_may_go(const struct exchange *x, const struct ladder *ladder)
{
    return !ladder->alone || ladder->alone == x;
}

unsigned exchange_encode(
    struct exchange *x, struct ladder *ladder, struct buf *out)
{
    if (x->ladder && x->connection != ladder->connection)
        restart(x);
    if (!x->ladder)
        x->at = ladder->at[x->verb->kind];
    x->ladder = ladder;
    x->connection = ladder->connection;
    x->rung = ladder_rung(x->verb->kind, x->at);
    x->due = (unsigned char)x->rung->encode(x, out);
    if (x->due && x->rung->alone)
        ladder->alone = x;
    return x->due;
}

bool exchange_compares(const struct exchange *x)
{
    return x->rung && x->rung->at_once;
}

bool exchange_leave(struct exchange *x)
{
    if (!x->ladder || x->ladder->alone != x)
        return false;
    x->ladder->alone = NULL;
    return true;
}

bool exchange_discard(struct buf *out)
{
    return command_word(out, "DISCARD");
}

/* The reply's bytes do not live until the next one. */
static void save_text(struct exchange *x)
{
    struct slice *text = &x->outcome.text;

    if (text->len == 0 || text->data == x->words)
        return;
    if (text->len > sizeof x->words)
        text->len = sizeof x->words;
    memcpy(x->words, text->data, text->len);
    text->data = x->words;
}

/* The best rung's refusal says most; those of its stand-ins are noise. */
static void remember_refusal(struct exchange *x)
{
    struct slice text = x->outcome.text;

    if (x->refused != FAULT_NONE)
        return;
    x->refused = x->outcome.fault;
    x->first_len = text.len > sizeof x->first ? sizeof x->first : text.len;
    memcpy(x->first, text.data, x->first_len);
}

/* True when there is another rung to try. */
static bool climb(struct exchange *x)
{
    unsigned rungs = ladder_rungs(x->verb->kind);

    remember_refusal(x);
    exchange_leave(x);
    x->step = 0;
    x->round = 0;
    if (++x->tried < rungs && !x->stuck) {
        x->at = (unsigned char)((x->at + 1U) % rungs);
        x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
        return true;
    }
    x->outcome.fault = x->refused;
    x->outcome.text = (struct slice){x->first, x->first_len};
    return false;
}

enum exchange_next exchange_reply(
    struct exchange *x, const struct reply *reply)
{
    x->due--;
    enum exchange_next next = x->rung->reply(x, reply);
    if (next != EXCHANGE_DONE) {
        save_text(x);
        return next;
    }
    const struct outcome *o = &x->outcome;
    bool refused = o->kind == OUTCOME_FAULT && !o->unsure &&
                   (x->rung->climb & 1U << o->fault) != 0 &&
                   !error_is_of_login(o->text);
    if (refused && climb(x))
        return EXCHANGE_AGAIN;
    if (!refused)
        x->ladder->at[x->verb->kind] = x->at;
    exchange_leave(x);
    return EXCHANGE_DONE;
}

/* --------------------------------------------------- what rungs decide with */

enum exchange_next rung_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms)
{
    x->outcome.kind = kind;
    x->outcome.left_ms = left_ms;
    return EXCHANGE_DONE;
}

static enum exchange_next fail(
    struct exchange *x, enum fault fault, struct slice text, bool unsure)
{
    x->outcome = (struct outcome){.kind = OUTCOME_FAULT,
        .fault = fault,
        .text = text,
        .left_ms = LEFT_UNKNOWN,
        .unsure = unsure};
    return EXCHANGE_DONE;
}

enum exchange_next rung_broken(struct exchange *x, const char *expected)
{
    return fail(x, FAULT_NOT_REDIS, slice_of(expected), true);
}

enum exchange_next rung_refused(struct exchange *x, const struct reply *reply)
{
    enum fault fault = classify_error(reply->bytes);
    const struct verb *verb = x->verb;

    /* A key of another type cannot hold our token: that is an answer. */
    if (fault == FAULT_WRONG_TYPE && verb->kind != VERB_ACQUIRE &&
        verb->token.len > 0) {
        x->outcome.text = reply->bytes;
        return rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    }
    /* Not unsure: a refused command did nothing, and a script of ours writes
     * last. But words that no Redis server has may be a proxy's own, after it
     * had passed the command on. */
    return fail(x, fault, reply->bytes, fault == FAULT_SERVER);
}

enum exchange_next rung_seen(
    struct exchange *x, struct slice value, int64_t left_ms)
{
    struct slice token = x->verb->token;

    if (token.len == 0) {
        x->outcome.value = value;
        return rung_decide(x, OUTCOME_SEEN, left_ms);
    }
    return slice_equal(value, token)
               ? rung_decide(x, OUTCOME_MINE, left_ms)
               : rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

enum exchange_next rung_absent(struct exchange *x)
{
    return rung_decide(x,
        x->verb->token.len > 0 ? OUTCOME_NOT_MINE : OUTCOME_FREE,
        LEFT_UNKNOWN);
}

int64_t rung_left(int64_t pttl)
{
    return pttl >= 0 ? pttl : pttl == -1 ? LEFT_FOREVER : 0;
}
