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
#include "wire/timestamp.h"

static void restart(struct exchange *x)
{
    x->ladder = NULL;
    x->closer = false;
    x->tried = 0;
    x->step = 0;
    x->stuck = false;
    x->round = 0;
    x->first_len = 0;
    x->refused = FAULT_NONE;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
}

void exchange_go_on(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept)
{
    x->verb = verb;
    x->kept = kept;
    x->rung = NULL;
    x->due = 0;
    x->whole = false;
    if (verb->kind == VERB_ACQUIRE)
        x->stamped = x->no_undo = false;
    restart(x);
}

void exchange_begin(
    struct exchange *x, const struct verb *verb, struct kept_commands *kept)
{
    x->stamped = x->no_undo = false;
    x->look_at = 0;
    exchange_go_on(x, verb, kept);
}

void exchange_inherit(struct exchange *x, const struct exchange *from)
{
    x->stamped = from->stamped;
    x->no_undo = from->no_undo;
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
    exchange_inherit(x, from);
}

bool exchange_may_go(const struct exchange *x, const struct ladder *ladder)
{
    return !ladder->alone || ladder->alone == x;
}

/* -------------------------------------------------------- which rung it is */

/* Of an acquire the rung tells how its token is written; and in what form
 * another one's value stands, nobody knows before it was read. */
static bool wants_stamps(const struct exchange *x)
{
    if (x->verb->kind == VERB_ACQUIRE)
        return false;
    return x->closer || (x->stamped && x->verb->token.len > 0);
}

static struct ladder_range range_of(const struct exchange *x)
{
    return ladder_range(x->ladder, x->verb->kind, wants_stamps(x));
}

/* Where the connection remembers its rung. */
static unsigned char *memory_of(const struct exchange *x)
{
    struct ladder *ladder = x->ladder;
    return wants_stamps(x) ? &ladder->stamped_at[x->verb->kind]
                           : &ladder->at[x->verb->kind];
}

static void choose_rung(struct exchange *x)
{
    struct ladder_range range = range_of(x);

    x->at = *memory_of(x);
    if (x->at < range.first || x->at >= range.end)
        x->at = (unsigned char)range.first;
}

unsigned exchange_encode(
    struct exchange *x, struct ladder *ladder, struct buf *out)
{
    bool acquire = x->verb->kind == VERB_ACQUIRE;

    if (x->ladder && x->connection != ladder->connection) {
        if (acquire) /* not a byte of its last step had left */
            x->no_undo = false;
        restart(x);
    }
    if (!x->ladder) {
        x->ladder = ladder;
        x->connection = ladder->connection;
        choose_rung(x);
    }
    if (x->verb->kind == VERB_ASK)
        x->rung = &asked_rung;
    else if (rights_doubted(x))
        x->rung = &rights_rung;
    else if (x->verb->kind == VERB_RAISE ||
             (acquire && x->verb->counter.len > 0))
        x->rung = &fenced_rung;
    else if (acquire && x->closer)
        x->rung = &takeover_rung;
    else
        x->rung = ladder_rung(x->verb->kind, x->at);
    if (acquire)
        x->stamped = x->rung->reply == stamped_reply;
    x->asked_at = ladder->now;
    x->due = (unsigned char)x->rung->encode(x, out);
    if (x->due && x->step >= STEP_WATCH)
        ladder->alone = x;
    return x->due;
}

int exchange_writes(const struct exchange *x, bool answered)
{
    if (x->step == STEP_EXEC)
        return x->due - 1;
    return x->step < STEP_ASK && !answered ? 0 : -1;
}

bool exchange_opened(const struct exchange *x)
{
    return x->step > STEP_WATCH;
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

/* The first one after x->at that was not tried; false: there is none. */
static bool next_rung(struct exchange *x, unsigned first, unsigned end)
{
    unsigned from = x->at < end ? x->at : end - 1;

    for (unsigned i = 1; first < end && i <= end - first; i++) {
        unsigned at = first + (from - first + i) % (end - first);
        if (x->tried & 1U << at)
            continue;
        x->at = (unsigned char)at;
        return true;
    }
    return false;
}

/* True when there is another rung to try. */
static bool climb(struct exchange *x)
{
    struct ladder_range range = range_of(x);

    remember_refusal(x);
    exchange_leave(x);
    x->step = 0;
    x->round = 0;
    x->tried |= (unsigned char)(1U << x->at);
    if (!x->stuck && (next_rung(x, range.first, range.stamps) ||
                         next_rung(x, range.first, range.end))) {
        x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
        return true;
    }
    x->outcome.fault = x->refused;
    x->outcome.text = (struct slice){x->first, x->first_len};
    bool ends = x->verb->kind == VERB_EXTEND || x->verb->kind == VERB_RELEASE;
    if (ends && !x->ladder->stamps) /* the next lock is not to meet that, too */
        x->ladder->doubted = true;
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
        *memory_of(x) = x->at;
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

void rung_keep_value(struct exchange *x, struct slice value)
{
    if (value.len > sizeof x->words)
        value.len = sizeof x->words;
    memcpy(x->words, value.data, value.len);
    x->value_len = value.len;
}

struct slice rung_value(const struct exchange *x)
{
    return (struct slice){x->words, x->value_len};
}

enum exchange_next rung_seen(
    struct exchange *x, struct slice value, int64_t left_ms)
{
    struct slice token = x->verb->token;
    int64_t end_s;
    enum stamp_kind kind = stamp_parse(value, &end_s);
    bool time = kind == STAMP_OURS ||
                (kind == STAMP_FOREIGN && x->ladder->interop);

    if (stamp_is_of(value, token) ||
        (token.len == 0 && left_ms == LEFT_FOREVER && time)) {
        *memory_of(x) = x->at;
        x->closer = true; /* it says itself when it is over */
        x->tried = 0;
        x->step = 0;
        choose_rung(x);
        return EXCHANGE_AGAIN;
    }
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
