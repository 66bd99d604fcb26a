/* SPDX-License-Identifier: MIT */
/*
 * The rungs of timestamps: the key has no end, its value says when the lock
 * is over. SETNX takes a free name. A value whose time is past by the server's
 * clock, all doubt included, is replaced under WATCH, as is our own one to
 * prolong or delete it; so none of ours ever writes over a live value.
 *
 * A bare rung does without WATCH. There GETSET takes over, and the value that
 * it brings back decides; where that one is still running, our time has been
 * written over a live one, so it stays for ever: to delete it would free
 * another one's lock. A DEL is sent only well inside the own time.
 */
#include "base/guard.h"
#include "wire/stamped.h"

/* Somebody else changes the key faster than we come to it. */
#define ROUNDS 3
/* Of one's own time, after which it is not touched any more without WATCH. */
#define CLEARLY_MS 1000
/* Replies to TIME, TTL and the value. */
#define LOOK_WITH_TIME 3

/* ------------------------------------------------------------------- times */

/* When a lease that begins now is over. Without WATCH a time that comes too
 * late replaces another one's: it must not be the shorter one, whatever each
 * asked for. */
static int64_t lease_end(const struct exchange *x)
{
    uint32_t ttl_ms = x->verb->ttl_ms;

    if (x->rung->bare && x->step == STAMPED_CHANGE &&
        ttl_ms < x->ladder->max_ttl_ms)
        ttl_ms = x->ladder->max_ttl_ms;
    return stamp_end(stamped_high(x) + ttl_ms);
}

static bool clearly_inside(const struct exchange *x, int64_t end_s)
{
    return x->ladder->clock.known &&
           end_s * 1000 - stamped_high(x) > CLEARLY_MS;
}

/* ---------------------------------------------------------------- encoding */

/* Of a step 0: what has to be known before it. */
static unsigned char first_step(const struct exchange *x)
{
    const struct ladder *ladder = x->ladder;
    enum verb_kind kind = x->verb->kind;

    if (!ladder->learnt)
        return STAMPED_LEARN;
    if (stamped_needs_clock(x) &&
        !server_clock_fresh(&ladder->clock, ladder->now))
        return ladder->timed ? STAMPED_LEARN : STAMPED_PROBE;
    if (kind == VERB_ACQUIRE)
        return STAMPED_SET;
    return x->rung->bare || kind == VERB_INSPECT ? STAMPED_READ : STEP_WATCH;
}

bool stamped_encode_value(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    return x->ladder->substr ? command_substr(out, key)
                             : command_getrange(out, key);
}

/* What stands there, and by when it is to be judged: the server's clock, where
 * it tells that, read before the value; and the ttl, for a time with an end is
 * not of this scheme. */
static unsigned encode_look(struct exchange *x, struct buf *out)
{
    bool timed = x->ladder->timed;
    bool ok = (!timed || command_word(out, "TIME")) &&
              command_on_key(out, "TTL", x->verb->key) &&
              stamped_encode_value(x, out);
    return ok ? (timed ? LOOK_WITH_TIME : LOOK_WITH_TIME - 1) : 0;
}

static bool encode_stamp(struct exchange *x, struct buf *out, const char *word)
{
    char stamp[STAMP_ROOM];
    x->end_s = lease_end(x);
    size_t len = stamp_format(stamp, x->verb->token, x->end_s);

    return len > 0 &&
           command_set(out, word, x->verb->key, (struct slice){stamp, len});
}

static bool encode_change(struct exchange *x, struct buf *out)
{
    if (x->verb->kind == VERB_RELEASE)
        return command_on_key(out, "DEL", x->verb->key);
    return encode_stamp(x, out, "GETSET");
}

static unsigned encode_step(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;

    switch (x->step) {
    case STAMPED_SET:
        if (!encode_stamp(x, out, "SETNX"))
            return 0;
        x->reads = (unsigned char)encode_look(x, out);
        return x->reads ? x->reads + 1U : 0;
    case STAMPED_CHANGE:
        if (x->verb->kind != VERB_RELEASE) {
            /* What an earlier one did stays done. */
            x->no_undo_before = x->no_undo;
            x->no_undo = guarded(GUARD_CLOBBER);
        }
        return encode_change(x, out) ? 1 : 0;
    case STAMPED_LEARN:
        return command_word(out, "TIME") && stamped_encode_value(x, out) ? 2
                                                                         : 0;
    case STAMPED_PROBE:
        return command_probe_clock(out, x->verb, x->asked_at)
                   ? COMMAND_PROBE_REPLIES
                   : 0;
    default:
        break;
    }
    if (x->verb->kind != VERB_INSPECT)
        return stamped_encode_value(x, out) ? 1 : 0;
    return stamped_encode_value(x, out) && command_on_key(out, "TTL", key) &&
                   command_on_key(out, "EXISTS", key)
               ? 3
               : 0;
}

unsigned stamped_encode(struct exchange *x, struct buf *out)
{
    size_t before = buf_len(out);

    if (x->step == 0)
        x->step = first_step(x);
    if (x->step >= STEP_WATCH)
        return watched_encode(x, out);
    unsigned due = encode_step(x, out);
    if (due == 0)
        buf_cut(out, before, buf_len(out) - before);
    return due;
}

/* --------------------------------------------------------------- acquiring */

static bool is_absent(const struct reply *reply)
{
    return reply->kind == REPLY_NIL ||
           (reply->kind == REPLY_STRING && reply->bytes.len == 0);
}

/* ACQUIRE: what stood there. Decides BUSY unless it was past at now_ms. */
static void judge(struct exchange *x, struct slice value, int64_t now_ms)
{
    int64_t end_s;

    if (stamp_parse(value, &end_s) == STAMP_NONE)
        rung_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
    else if (end_s * 1000 > now_ms)
        rung_decide(x, OUTCOME_BUSY, stamped_left(end_s, now_ms));
}

/* The present step has asked for TIME and was told. */
static bool tells_time(const struct exchange *x)
{
    return x->reads == LOOK_WITH_TIME && x->read > 0;
}

/* The server's clock at the least, when the value was read. What GETSET brings
 * back is judged by what is known of that clock: no value may pass here that
 * would not pass then. */
static int64_t read_at(const struct exchange *x)
{
    return tells_time(x) && !x->rung->bare ? x->read : stamped_low(x);
}

/* One reply of encode_look() but the value's, left being those to come. */
static void look_replied(
    struct exchange *x, const struct reply *reply, unsigned left)
{
    if (left == 2)
        stamped_time_told(x, reply);
    else if (reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else if (reply->kind != REPLY_INTEGER)
        rung_broken(x, "expected the seconds left in reply to TTL");
    else if (reply->integer >= 0 && x->verb->kind == VERB_ACQUIRE)
        rung_decide(x, OUTCOME_BUSY,
            reply->integer < INT32_MAX ? reply->integer * 1000 : LEFT_FOREVER);
}

/* Our time stands there. It was made by a clock that was read before; had it
 * been set since, the lease would outlast the time. */
static enum exchange_next was_set(struct exchange *x)
{
    int64_t needed_ms = x->read + x->verb->ttl_ms;

    if (!tells_time(x) || x->end_s * 1000 >= needed_ms)
        return rung_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    stamped_fail(x, "TRYAGAIN the server's clock was set meanwhile");
    x->outcome.unsure = true;
    return EXCHANGE_DONE;
}

static enum exchange_next set_replied(
    struct exchange *x, const struct reply *reply)
{
    bool first = x->due == x->reads;

    if (first && reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else if (first && (reply->kind != REPLY_INTEGER || reply->integer < 0 ||
                          reply->integer > 1))
        rung_broken(x, "expected 1 or 0 in reply to SETNX");
    else if (first)
        x->set = reply->integer == 1;
    else if (rung_open(x) && x->due > 0 && !(x->set && x->due == 1)) {
        look_replied(x, reply, x->due);
        if (x->set && !rung_open(x))
            x->outcome.unsure = true; /* our time stands there */
    }
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (rung_open(x) && x->set)
        return was_set(x);
    if (!rung_open(x))
        return EXCHANGE_DONE;
    if (stamped_refusal(reply, 1U << FAULT_WRONG_TYPE))
        return rung_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
    if (reply->kind == REPLY_ERROR)
        return rung_refused(x, reply);
    if (is_absent(reply)) {
        if (++x->round < ROUNDS)
            return EXCHANGE_AGAIN;
        return rung_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    }
    if (reply->kind != REPLY_STRING)
        return rung_broken(x, "expected a string in reply to GETRANGE");
    judge(x, reply->bytes, read_at(x));
    if (!rung_open(x))
        return EXCHANGE_DONE;
    x->step = x->rung->bare ? STAMPED_CHANGE : STEP_WATCH;
    return EXCHANGE_AGAIN;
}

/* GETSET without WATCH. What it brought back has to have been past before it
 * was sent; by now a live one may have ended. */
static enum exchange_next clobbered(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        rung_refused(x, reply);
        x->no_undo = x->no_undo && x->outcome.unsure;
        return EXCHANGE_DONE;
    }
    if (reply->kind != REPLY_NIL && reply->kind != REPLY_STRING)
        return rung_broken(x, "expected a string in reply to GETSET");
    if (reply->kind == REPLY_STRING)
        judge(x, reply->bytes,
            server_clock_low(&x->ladder->clock, x->asked_at));
    if (rung_open(x))
        x->no_undo = false;
    else /* the token stands there, in the place of another one's */
        x->outcome.unsure = true;
    return EXCHANGE_DONE;
}

/* --------------------------------------------- reading, comparing, changing */

/* EXTEND, RELEASE. */
static void compare(struct exchange *x, struct slice value)
{
    bool extend = x->verb->kind == VERB_EXTEND;
    int64_t end_s = 0;

    /* With no_undo it stands there for another one. */
    if (x->no_undo || !stamped_ours(x, value)) {
        rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        return;
    }
    bool time = stamp_parse(value, &end_s) != STAMP_NONE;
    bool clear = time && clearly_inside(x, end_s);
    if (extend && (!time || end_s * 1000 <= stamped_high(x)))
        rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (extend && end_s >= lease_end(x))
        rung_decide(x, OUTCOME_MINE, stamped_left(end_s, stamped_high(x)));
    else if (x->rung->bare && !clear && extend)
        rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (x->rung->bare && !clear && stamp_is_of(value, x->verb->token))
        rung_decide(x, OUTCOME_MINE, LEFT_UNKNOWN); /* it is over soon */
    else if (x->rung->bare && !clear)
        stamped_fail(x, "ERR unknown command: without WATCH a value that is "
                        "over cannot be removed safely");
}

static void value_read(struct exchange *x, const struct reply *reply)
{
    bool acquire = x->verb->kind == VERB_ACQUIRE;

    if (x->step == STEP_WATCH && x->due > 1) {
        look_replied(x, reply, x->due - 1);
        return;
    }
    if (reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else if (is_absent(reply))
        rung_decide(x, acquire ? OUTCOME_BUSY : OUTCOME_NOT_MINE,
            acquire ? 0 : LEFT_UNKNOWN);
    else if (reply->kind != REPLY_STRING)
        rung_broken(x, "expected a string in reply to GETRANGE");
    else if (acquire)
        judge(x, reply->bytes, read_at(x));
    else
        compare(x, reply->bytes);
}

static enum exchange_next changed(
    struct exchange *x, const struct reply *reply)
{
    enum verb_kind kind = x->verb->kind;

    bool text = reply->kind == REPLY_STRING || reply->kind == REPLY_NIL;
    if (kind == VERB_ACQUIRE && text)
        return rung_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    /* Without WATCH another one may have taken it over after it was read. */
    if (kind == VERB_EXTEND && text) {
        if (reply->kind == REPLY_NIL)
            x->no_undo = false; /* it was in nobody's way */
        if (reply->kind != REPLY_STRING || !stamped_ours(x, reply->bytes))
            return rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        x->no_undo = false;
        return rung_decide(x, OUTCOME_MINE, x->verb->ttl_ms);
    }
    if (kind == VERB_RELEASE && reply->kind == REPLY_INTEGER)
        return rung_decide(x,
            reply->integer == 1 ? OUTCOME_MINE : OUTCOME_NOT_MINE,
            LEFT_UNKNOWN);
    return rung_broken(x, "expected the result of GETSET or DEL");
}

const struct watched stamped_watched = {
    encode_look, value_read, encode_change, changed};

/* ----------------------------------------------------------------- replies */

static enum exchange_next bare_read(
    struct exchange *x, const struct reply *reply)
{
    value_read(x, reply);
    if (!rung_open(x))
        return EXCHANGE_DONE;
    x->step = STAMPED_CHANGE;
    return EXCHANGE_AGAIN;
}

static enum exchange_next bare_changed(
    struct exchange *x, const struct reply *reply)
{
    if (x->verb->kind == VERB_ACQUIRE)
        return clobbered(x, reply);
    if (reply->kind != REPLY_ERROR)
        return changed(x, reply);
    rung_refused(x, reply);
    if (x->verb->kind == VERB_EXTEND && !x->outcome.unsure)
        x->no_undo = x->no_undo_before; /* nothing was done */
    return EXCHANGE_DONE;
}

enum exchange_next stamped_reply(struct exchange *x, const struct reply *reply)
{
    switch (x->step) {
    case STAMPED_SET:
        return set_replied(x, reply);
    case STAMPED_CHANGE:
        return bare_changed(x, reply);
    case STAMPED_LEARN:
        return stamped_learn(x, reply);
    case STAMPED_PROBE:
        return stamped_probe(x, reply);
    case STAMPED_READ:
        return x->verb->kind == VERB_INSPECT ? stamped_inspected(x, reply)
                                             : bare_read(x, reply);
    default:
        return watched_reply(x, reply);
    }
}
