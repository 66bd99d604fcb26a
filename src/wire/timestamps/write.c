/* SPDX-License-Identifier: MIT */
/*
 * Acquires, extends and releases with a time in the value; the key has no TTL.
 * SETNX acquires a free name. A value whose time has certainly passed by the
 * server's clock is replaced under WATCH; so is our own value, to extend or
 * delete it. Invariant: under WATCH no valid value is ever overwritten.
 *
 * On servers without WATCH, GETSET takes over, and the value that it returns
 * decides. If that was still valid, our value has overwritten it and is left
 * there, because deleting it would free another owner's lock. A DEL is sent
 * only well before our own time ends.
 */
#include "model/guard.h"
#include "wire/timestamps/parts.h"

/* The key may be deleted between SETNX and reading it again and again. */
#define ATTEMPTS_MAX 3
/* Without WATCH our own value is neither extended nor deleted when less than
 * this is left of its time. */
#define CLEARLY_MS 1000
/* Replies to TIME, TTL and the value. */
#define LOOK_WITH_TIME 3

/* ------------------------------------------------------------------- times */

/* When a lease that begins now ends. Without WATCH a time that arrives too late
 * replaces another owner's. It must not be the earlier one, so it is at least
 * max_ttl_ms away. */
static int64_t stamped_lease_end(const struct exchange *x)
{
    uint32_t ttl_ms = x->verb->ttl_ms;

    if (x->strategy->without_watch && x->step == STAMPED_CHANGE &&
        ttl_ms < x->dialect->max_ttl_ms)
        ttl_ms = x->dialect->max_ttl_ms;
    return stamp_end(stamped_high(x) + ttl_ms);
}

static bool stamped_clearly_valid(const struct exchange *x, int64_t end_s)
{
    return x->dialect->stamps.clock.known &&
           end_s * 1000 - stamped_high(x) > CLEARLY_MS;
}

/* ---------------------------------------------------------------- encoding */

/* The step to begin with: learns first what the verb needs to know. */
static unsigned char stamped_first_step(const struct exchange *x)
{
    const struct dialect *dialect = x->dialect;
    const struct timestamps_server *stamps = &dialect->stamps;
    enum verb_kind kind = x->verb->kind;

    if (!stamps->learnt)
        return STAMPED_LEARN;
    if (stamped_needs_clock(x) &&
        !server_clock_fresh(&stamps->clock, dialect->now))
        return stamps->timed ? STAMPED_LEARN : STAMPED_PROBE;
    if (kind == VERB_ACQUIRE)
        return STAMPED_SET;
    return x->strategy->without_watch || kind == VERB_INSPECT ? STAMPED_READ
                                                              : STEP_WATCH;
}

bool stamped_encode_value(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;
    return x->dialect->stamps.substr ? command_substr(out, key)
                                     : command_getrange(out, key);
}

/* Reads the value and what it is compared with: the server's clock, if there is
 * TIME, before the value; and the TTL, because a key that has one does not
 * belong to this scheme. */
static unsigned stamped_encode_look(struct exchange *x, struct buf *out)
{
    bool timed = x->dialect->stamps.timed;
    bool ok = (!timed || command_word(out, "TIME")) &&
              command_on_key(out, "TTL", x->verb->key) &&
              stamped_encode_value(x, out);
    return ok ? (timed ? LOOK_WITH_TIME : LOOK_WITH_TIME - 1) : 0;
}

static bool stamped_encode_stamp(
    struct exchange *x, struct buf *out, const char *word)
{
    char stamp[STAMP_ROOM];
    x->stamps.end_s = stamped_lease_end(x);
    size_t len = stamp_format(stamp, x->verb->token, x->stamps.end_s);

    return len > 0 &&
           command_set(out, word, x->verb->key, (struct slice){stamp, len});
}

static bool stamped_encode_change(struct exchange *x, struct buf *out)
{
    if (x->verb->kind == VERB_RELEASE)
        return command_on_key(out, "DEL", x->verb->key);
    return stamped_encode_stamp(x, out, "GETSET");
}

static unsigned stamped_encode_step(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;

    switch (x->step) {
    case STAMPED_SET:
        if (!stamped_encode_stamp(x, out, "SETNX"))
            return 0;
        x->reads = (unsigned char)stamped_encode_look(x, out);
        return x->reads ? x->reads + 1U : 0;
    case STAMPED_CHANGE:
        if (x->verb->kind != VERB_RELEASE) {
            /* If this one is refused, the previous value still counts. */
            x->written_before = x->written;
            x->written = guarded(GUARD_CLOBBER) ? WRITTEN_OVER : WRITTEN_END;
        }
        return stamped_encode_change(x, out) ? 1 : 0;
    case STAMPED_LEARN:
        return command_word(out, "TIME") && stamped_encode_value(x, out) ? 2
                                                                         : 0;
    case STAMPED_PROBE:
        return command_probe_clock(out, x->verb, x->encoded_at)
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
        x->step = stamped_first_step(x);
    if (x->step >= STEP_WATCH)
        return watched_encode(x, out);
    unsigned due = stamped_encode_step(x, out);
    if (due == 0)
        buf_cut(out, before, buf_len(out) - before);
    return due;
}

/* --------------------------------------------------------------- acquiring */

static bool stamped_is_absent(const struct reply *reply)
{
    return reply->kind == REPLY_NIL ||
           (reply->kind == REPLY_STRING && reply->bytes.len == 0);
}

/* ACQUIRE: decides BUSY unless the value is a time before now_ms. */
static void stamped_check_past(
    struct exchange *x, struct slice value, int64_t now_ms)
{
    int64_t end_s;

    if (stamp_parse(value, &end_s) == STAMP_NONE)
        strategy_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
    else if (end_s * 1000 > now_ms)
        strategy_decide(x, OUTCOME_BUSY, stamped_left(end_s, now_ms));
}

/* Did the current step ask for TIME, and get it? */
static bool stamped_has_time(const struct exchange *x)
{
    return x->reads == LOOK_WITH_TIME && x->server_ms > 0;
}

/* The earliest time that the server's clock may have shown when the value was
 * read. Without WATCH it comes from what is known about that clock, as for the
 * value that GETSET will return: both checks must use the same bound. */
static int64_t stamped_read_at(const struct exchange *x)
{
    return stamped_has_time(x) && !x->strategy->without_watch ? x->server_ms
                                                              : stamped_low(x);
}

/* Takes a reply to stamped_encode_look() other than the value; left: how many
 * follow it. */
static void stamped_look_replied(
    struct exchange *x, const struct reply *reply, unsigned left)
{
    if (left == 2)
        stamped_time_replied(x, reply);
    else if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (reply->kind != REPLY_INTEGER)
        strategy_bad_reply(x, "expected the seconds left in reply to TTL");
    else if (reply->integer >= 0 && x->verb->kind == VERB_ACQUIRE)
        strategy_decide(x, OUTCOME_BUSY,
            reply->integer < INT32_MAX ? reply->integer * 1000 : LEFT_FOREVER);
}

/* SETNX wrote our time, computed from an earlier reading of the server's clock.
 * If that clock has been set forward since, the time may be too early for the
 * lease: then this is no grant. */
static enum exchange_next stamped_was_set(struct exchange *x)
{
    int64_t needed_ms = x->server_ms + x->verb->ttl_ms;

    if (!stamped_has_time(x) || x->stamps.end_s * 1000 >= needed_ms)
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    stamped_fail(x, "TRYAGAIN the server's clock was set meanwhile");
    x->outcome.unsure = true;
    return EXCHANGE_DONE;
}

static enum exchange_next stamped_set_replied(
    struct exchange *x, const struct reply *reply)
{
    bool first = x->due == x->reads;

    if (first && reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (first && (reply->kind != REPLY_INTEGER || reply->integer < 0 ||
                          reply->integer > 1))
        strategy_bad_reply(x, "expected 1 or 0 in reply to SETNX");
    else if (first)
        x->stamps.set = reply->integer == 1;
    else if (strategy_undecided(x) && x->due > 0 &&
             !(x->stamps.set && x->due == 1)) {
        stamped_look_replied(x, reply, x->due);
        if (x->stamps.set && !strategy_undecided(x))
            x->outcome.unsure = true; /* SETNX has written our time */
    }
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (strategy_undecided(x) && x->stamps.set)
        return stamped_was_set(x);
    if (!strategy_undecided(x))
        return EXCHANGE_DONE;
    if (stamped_refusal(reply, 1U << FAULT_WRONG_TYPE))
        return strategy_decide(x, OUTCOME_BUSY, LEFT_FOREVER);
    if (reply->kind == REPLY_ERROR)
        return strategy_error_or_not_mine(x, reply);
    if (stamped_is_absent(reply)) {
        if (++x->write_tries < ATTEMPTS_MAX)
            return EXCHANGE_AGAIN;
        return strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    }
    if (reply->kind != REPLY_STRING)
        return strategy_bad_reply(x, "expected a string in reply to GETRANGE");
    stamped_check_past(x, reply->bytes, stamped_read_at(x));
    if (!strategy_undecided(x))
        return EXCHANGE_DONE;
    x->step = x->strategy->without_watch ? STAMPED_CHANGE : STEP_WATCH;
    return EXCHANGE_AGAIN;
}

/* Takes the reply to GETSET without WATCH. The old value's time must have
 * passed before GETSET was sent: by now the time of a live one may have passed
 * too. */
static enum exchange_next stamped_getset_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        strategy_error_or_not_mine(x, reply);
        if (!x->outcome.unsure)
            x->written = WRITTEN_END;
        return EXCHANGE_DONE;
    }
    if (reply->kind != REPLY_NIL && reply->kind != REPLY_STRING)
        return strategy_bad_reply(x, "expected a string in reply to GETSET");
    if (reply->kind == REPLY_STRING)
        stamped_check_past(x, reply->bytes,
            server_clock_low(&x->dialect->stamps.clock, x->encoded_at));
    if (strategy_undecided(x)) {
        x->written = WRITTEN_END;
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    }
    x->outcome.unsure = true; /* our value has replaced another owner's */
    return EXCHANGE_DONE;
}

/* --------------------------------------------- reading, comparing, changing */

/* EXTEND, RELEASE. */
static void stamped_compare(struct exchange *x, struct slice value)
{
    bool extend = x->verb->kind == VERB_EXTEND;
    int64_t end_s = 0;

    /* With WRITTEN_OVER our value protects another owner's lock. */
    if (exchange_form(x) == WRITTEN_OVER || !stamped_ours(x, value)) {
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        return;
    }
    bool time = stamp_parse(value, &end_s) != STAMP_NONE;
    bool clear = time && stamped_clearly_valid(x, end_s);
    if (extend && (!time || end_s * 1000 <= stamped_high(x)))
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (extend && end_s >= stamped_lease_end(x))
        strategy_decide(x, OUTCOME_MINE, stamped_left(end_s, stamped_high(x)));
    else if (x->strategy->without_watch && !clear && extend)
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    else if (x->strategy->without_watch && !clear &&
             stamp_is_of(value, x->verb->token))
        strategy_decide(x, OUTCOME_MINE, LEFT_UNKNOWN); /* ends by itself */
    else if (x->strategy->without_watch && !clear)
        stamped_fail(x, "ERR unknown command: without WATCH a value whose "
                        "time has passed cannot be removed safely");
}

static void stamped_value_read(struct exchange *x, const struct reply *reply)
{
    bool acquire = x->verb->kind == VERB_ACQUIRE;

    if (x->step == STEP_WATCH && x->due > 1) {
        stamped_look_replied(x, reply, x->due - 1);
        return;
    }
    if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (stamped_is_absent(reply))
        strategy_decide(x, acquire ? OUTCOME_BUSY : OUTCOME_NOT_MINE,
            acquire ? 0 : LEFT_UNKNOWN);
    else if (reply->kind != REPLY_STRING)
        strategy_bad_reply(x, "expected a string in reply to GETRANGE");
    else if (acquire)
        stamped_check_past(x, reply->bytes, stamped_read_at(x));
    else
        stamped_compare(x, reply->bytes);
}

static enum exchange_next stamped_changed(
    struct exchange *x, const struct reply *reply)
{
    enum verb_kind kind = x->verb->kind;

    bool text = reply->kind == REPLY_STRING || reply->kind == REPLY_NIL;
    if (kind == VERB_ACQUIRE && text)
        return strategy_decide(x, OUTCOME_GRANTED, LEFT_UNKNOWN);
    /* Without WATCH another client may have taken the key since it was read. */
    if (kind == VERB_EXTEND && text) {
        if (reply->kind == REPLY_NIL)
            x->written = WRITTEN_END; /* there was nothing to overwrite */
        if (reply->kind != REPLY_STRING || !stamped_ours(x, reply->bytes))
            return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        x->written = WRITTEN_END;
        return strategy_decide(x, OUTCOME_MINE, x->verb->ttl_ms);
    }
    if (kind == VERB_RELEASE && reply->kind == REPLY_INTEGER)
        return strategy_decide(x,
            reply->integer == 1 ? OUTCOME_MINE : OUTCOME_NOT_MINE,
            LEFT_UNKNOWN);
    return strategy_bad_reply(x, "expected the result of GETSET or DEL");
}

static const struct watched stamped_watched = {stamped_encode_look,
    stamped_value_read, stamped_encode_change, stamped_changed};

/* ----------------------------------------------------------------- replies */

static enum exchange_next stamped_read_replied(
    struct exchange *x, const struct reply *reply)
{
    stamped_value_read(x, reply);
    if (!strategy_undecided(x))
        return EXCHANGE_DONE;
    x->step = STAMPED_CHANGE;
    return EXCHANGE_AGAIN;
}

static enum exchange_next stamped_change_replied(
    struct exchange *x, const struct reply *reply)
{
    if (x->verb->kind == VERB_ACQUIRE)
        return stamped_getset_replied(x, reply);
    if (reply->kind != REPLY_ERROR)
        return stamped_changed(x, reply);
    strategy_error_or_not_mine(x, reply);
    if (x->verb->kind == VERB_EXTEND && !x->outcome.unsure)
        x->written = x->written_before; /* nothing was done */
    return EXCHANGE_DONE;
}

enum exchange_next stamped_reply(struct exchange *x, const struct reply *reply)
{
    switch (x->step) {
    case STAMPED_SET:
        return stamped_set_replied(x, reply);
    case STAMPED_CHANGE:
        return stamped_change_replied(x, reply);
    case STAMPED_LEARN:
        return stamped_learn(x, reply);
    case STAMPED_PROBE:
        return stamped_probe(x, reply);
    case STAMPED_READ:
        return x->verb->kind == VERB_INSPECT ? stamped_inspected(x, reply)
                                             : stamped_read_replied(x, reply);
    default:
        return watched_reply(x, reply);
    }
}

/* -------------------------------------------------------------- strategies */

const struct strategy timestamps_acquire = {
    .name = "SETNX + GETSET timestamps (weaker promises)",
    .fallback = ON_REFUSED,
    .ttl_is_in_value = true,
    .weak = true,
    .encode = stamped_encode,
    .reply = stamped_reply,
    .watched = &stamped_watched};
const struct strategy timestamps_acquire_unwatched = {
    .name = "SETNX + GETSET timestamps without WATCH (weakest promises)",
    .fallback = ON_REFUSED,
    .ttl_is_in_value = true,
    .weak = true,
    .without_watch = true,
    .encode = stamped_encode,
    .reply = stamped_reply};
const struct strategy timestamps_change = {.name = "timestamps",
    .fallback = ON_REFUSED,
    .ttl_is_in_value = true,
    .weak = true,
    .encode = stamped_encode,
    .reply = stamped_reply,
    .watched = &stamped_watched};
const struct strategy timestamps_change_unwatched = {
    .name = "timestamps without WATCH",
    .fallback = ON_REFUSED,
    .ttl_is_in_value = true,
    .weak = true,
    .without_watch = true,
    .encode = stamped_encode,
    .reply = stamped_reply};
const struct strategy timestamps_inspect = {.name = "timestamps",
    .fallback = ON_REFUSED_OR_NO_STRING,
    .ttl_is_in_value = true,
    .weak = true,
    .encode = stamped_encode,
    .reply = stamped_reply};
