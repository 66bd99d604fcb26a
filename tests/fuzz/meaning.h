/* SPDX-License-Identifier: MIT */
/*
 * docs/wire.md written down once more: what the replies to a step mean, and
 * what follows it. Where two readings of nonsense are both safe, the model
 * takes the one of the exchange (got, next).
 */
#ifndef NXLOCK_TESTS_FUZZ_MEANING_H
#define NXLOCK_TESTS_FUZZ_MEANING_H

#include "fuzz/strategies.h"
#include "wire/classify.h"

#define ROUNDS 3

/* ---------------------------------------------------- what one reply means */

static bool is_number(const struct reply *reply, int64_t least)
{
    return reply->kind == REPLY_INTEGER && reply->integer >= least;
}

static bool is_status(const struct reply *reply, const char *word)
{
    return reply->kind == REPLY_STATUS &&
           slice_equal(reply->bytes, slice_of(word));
}

static bool is_error(const struct reply *reply)
{
    return reply->kind == REPLY_ERROR;
}

static struct outcome decided(enum outcome_kind kind, int64_t left_ms)
{
    return (struct outcome){.kind = kind, .left_ms = left_ms};
}

static struct outcome no(void)
{
    return decided(OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

/* GRANTED is the outcome of no verb that changes a key step by step. */
static struct outcome nothing(void)
{
    return decided(OUTCOME_GRANTED, LEFT_UNKNOWN);
}

static struct outcome fault_of(enum fault fault, struct slice text)
{
    return (struct outcome){.kind = OUTCOME_FAULT,
        .fault = fault,
        .unsure = fault == FAULT_SERVER || fault == FAULT_NOT_REDIS,
        .left_ms = LEFT_UNKNOWN,
        .text = text};
}

static struct outcome broken(void)
{
    return fault_of(FAULT_NOT_REDIS, slice_of("expected "));
}

static bool is_broken(const struct outcome *o)
{
    return o->fault == FAULT_NOT_REDIS;
}

/* An error never means yes; it means no where the key cannot hold the token. */
static struct outcome refused(
    const struct verb *verb, const struct reply *error)
{
    enum fault fault = classify_error(error->bytes);

    bool draws = verb->kind == VERB_RAISE && verb->fence == 0;

    if (fault == FAULT_WRONG_TYPE && !verb_may_grant(verb->kind) && !draws &&
        verb->token.len > 0)
        return no();
    return fault_of(fault, error->bytes);
}

/* yes, no or neither. */
static struct outcome one_of(const struct model *m, const struct reply *reply,
    bool yes, bool not, struct outcome mine, struct outcome other)
{
    if (is_error(reply))
        return refused(&m->verb, reply);
    return yes ? mine : not ? other : broken();
}

static int64_t left_of(int64_t pttl)
{
    return pttl == -2 ? 0 : pttl;
}

static struct outcome seen(
    const struct verb *verb, struct slice value, int64_t pttl)
{
    if (verb->token.len > 0)
        return slice_equal(value, verb->token)
                   ? decided(OUTCOME_MINE, left_of(pttl))
                   : no();
    struct outcome o = decided(OUTCOME_SEEN, left_of(pttl));
    o.value = value;
    return o;
}

/* ------------------------------------------------------ what a step means */

static struct outcome inspected(
    const struct model *m, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (is_error(reply))
        return refused(&m->verb, reply);
    if (reply->kind != REPLY_ARRAY || (reply->count != 0 && reply->count != 2))
        return broken();
    if (reply->count == 0)
        return m->verb.token.len > 0 ? no()
                                     : decided(OUTCOME_FREE, LEFT_UNKNOWN);
    if (item[0].kind != REPLY_STRING || !is_number(&item[1], -2))
        return broken();
    return seen(&m->verb, item[0].bytes, item[1].integer);
}

/* The reply to PTTL behind an acquire: it may add the time left, or show that
 * replies and commands do not match. */
static struct outcome acquired(const struct model *m, const struct told *told)
{
    const struct reply *set = &told[0].reply, *left = &told[1].reply;
    struct outcome o = one_of(m, set, is_status(set, "OK"),
        set->kind == REPLY_NIL, decided(OUTCOME_GRANTED, LEFT_UNKNOWN),
        decided(OUTCOME_BUSY, LEFT_UNKNOWN));

    if (!m->verb.want_left)
        return o;
    if (!is_number(left, -2))
        return is_error(left) ? o : broken();
    if (o.kind == OUTCOME_BUSY)
        o.left_ms = left_of(left->integer);
    return o;
}

/* An answer of no, and then one that is none: either may be believed. */
static struct outcome either(
    struct outcome was, struct outcome now, const struct outcome *got)
{
    bool said_no = was.kind == OUTCOME_NOT_MINE;
    return said_no && got->kind == OUTCOME_NOT_MINE ? was : now;
}

static struct outcome value_read(
    const struct model *m, const struct told *told, const struct outcome *got)
{
    const struct reply *left = &told[0].reply, *value = &told[1].reply,
                       *there = &told[2].reply;
    const struct verb *verb = &m->verb;
    struct outcome o = nothing(), now;

    if (is_error(left))
        o = refused(verb, left);
    else if (!is_number(left, -2))
        o = broken();
    if (o.kind == OUTCOME_FAULT)
        return o;
    struct slice kept = value->bytes;
    kept.len = kept.len > 512 ? 512 : kept.len;
    now = is_error(value)               ? refused(verb, value)
          : value->kind != REPLY_STRING ? broken()
                                        : seen(verb, kept, left->integer);
    if (o.kind != OUTCOME_NOT_MINE)
        o = now;
    else if (now.kind == OUTCOME_FAULT)
        o = either(o, now, got);
    if (o.kind == OUTCOME_FAULT)
        return o;
    if (is_error(there))
        return either(o, refused(verb, there), got);
    if (there->kind != REPLY_INTEGER)
        return either(o, broken(), got);
    if (there->integer != 0)
        return o;
    return verb->token.len > 0 ? no() : decided(OUTCOME_FREE, LEFT_UNKNOWN);
}

/* WATCH, GETRANGE, PTTL, EXISTS: nothing() when it is ours to change. */
static struct outcome watched(const struct model *m, const struct told *told)
{
    static const enum reply_kind kinds[] = {
        REPLY_STATUS, REPLY_STRING, REPLY_INTEGER, REPLY_INTEGER};
    int64_t left = told[2].reply.integer;

    for (int i = 0; i < 4; i++) {
        const struct reply *reply = &told[i].reply;
        if (is_error(reply))
            return refused(&m->verb, reply);
        if (reply->kind != kinds[i])
            return broken();
        if (i == 1 && !slice_equal(reply->bytes, m->verb.token))
            return no();
        if (i == 3 && reply->integer == 0)
            return no();
    }
    if (m->verb.kind == VERB_EXTEND &&
        (left == -1 || left > (int64_t)m->verb.ttl_ms))
        return decided(OUTCOME_MINE, left);
    return nothing();
}

/* What EXEC did. nothing(): somebody was faster. */
static struct outcome executed(const struct model *m, const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (is_error(reply))
        return refused(&m->verb, reply);
    if (reply->kind == REPLY_NIL)
        return nothing();
    if (reply->kind != REPLY_ARRAY || reply->count != 1)
        return broken();
    return one_of(m, item, is_number(item, 1) && item->integer == 1,
        is_number(item, 0) && item->integer == 0,
        decided(OUTCOME_MINE, m->verb.kind == VERB_EXTEND
                                  ? (int64_t)m->verb.ttl_ms
                                  : LEFT_UNKNOWN),
        no());
}

/* -------------------------------------------------------- what follows it */

/* No other way would help then: it is told in place of an earlier refusal. Only
 * the beginning of a text is looked at. */
static bool denies_key(struct slice text)
{
    size_t len = text.len < EXCHANGE_TEXT ? text.len : EXCHANGE_TEXT;
    return slice_starts(text, "NOPERM ") && memmem(text.data, len, " key", 4);
}

/* A command that says that the key is no string knows nothing of several
 * holders. It explains why scripts are missing, and nothing else. */
static bool explains_better(enum fault told, enum fault fault)
{
    if (told == FAULT_UNSUPPORTED)
        return fault == FAULT_WRONG_TYPE;
    return told == FAULT_NONE ||
           (told == FAULT_WRONG_TYPE && fault != FAULT_UNSUPPORTED);
}

/* True when the exchange is over; else it goes on in the next way. */
static bool conclude(struct model *m, struct outcome o)
{
    unsigned fallback_on = 1U << FAULT_UNSUPPORTED;
    unsigned count = ways[m->verb.kind].count;

    /* Only the script can take a token out of its line. */
    if (m->verb.kind == VERB_RELEASE && m->verb.client.len > 0 &&
        model_way(m) != SCRIPT && o.kind == OUTCOME_NOT_MINE)
        o.unsure = true;
    if (model_way(m) != SET_NX)
        fallback_on |= 1U << FAULT_NO_PERMISSION | 1U << FAULT_SCRIPT_DENIED;
    if (m->verb.kind == VERB_INSPECT && model_way(m) != SCRIPT)
        fallback_on |= 1U << FAULT_WRONG_TYPE; /* the script may know it */
    m->outcome = o;
    m->settled =
        o.kind != OUTCOME_FAULT || o.unsure || !(fallback_on & 1U << o.fault);
    if (m->settled)
        return true;
    if (explains_better(m->told.fault, o.fault) || denies_key(o.text))
        m->told = o;
    m->outcome = m->told;
    m->tried |= 1U << m->at;
    m->step = m->round = 0;
    m->odd = false;
    return m->tried == (1U << count) - 1 || m->stuck;
}

static bool goes_on(struct model *m, unsigned step)
{
    m->step = step;
    return false;
}

static bool discards(struct model *m, struct outcome o)
{
    m->was = o;
    return goes_on(m, 2);
}

static bool is_open(const struct outcome *o)
{
    return o->kind == OUTCOME_GRANTED;
}

/* After WATCH ... MULTI. */
static bool opened(struct model *m, const struct told *told,
    const struct outcome *got, bool again)
{
    const struct reply *multi = &told[4].reply;
    struct outcome o = watched(m, told);

    if (is_error(multi))
        return conclude(m, is_open(&o) ? refused(&m->verb, multi) : o);
    m->odd = !is_status(&told[0].reply, "OK") || !is_status(multi, "OK");
    if (is_status(multi, "OK")) /* the only answer that lets it go on */
        return is_open(&o) && !(m->odd && is_broken(got))
                   ? goes_on(m, 1)
                   : discards(m, is_open(&o) ? broken() : o);
    if (is_open(&o) || is_broken(got))
        o = broken();
    return again ? discards(m, o) : conclude(m, o);
}

/* After DEL or PEXPIRE, and EXEC. */
static bool changed(struct model *m, const struct told *told,
    const struct outcome *got, bool again)
{
    const struct reply *queued = &told[0].reply, *exec = &told[1].reply;
    struct outcome o = nothing();
    bool ended = !is_error(exec) || slice_starts(exec->bytes, "EXECABORT");

    if (is_error(queued))
        o = refused(&m->verb, queued);
    else if (queued->kind != REPLY_STATUS)
        o = broken();
    else if (!is_status(queued, "QUEUED") && is_broken(got))
        o = broken();
    if (is_open(&o)) {
        o = executed(m, exec);
        if (is_open(&o)) {
            if (++m->round < ROUNDS)
                return goes_on(m, 0);
            o = fault_of(FAULT_RETRY, slice_of("EXECABORT "));
        }
    }
    if (ended || (is_broken(&o) && !again))
        return conclude(m, o);
    return discards(m, o);
}

static bool watch_replies(struct model *m, const struct told *told,
    const struct outcome *got, bool again)
{
    if (m->step == 0)
        return opened(m, told, got, again);
    if (m->step == 1)
        return changed(m, told, got, again);
    const struct reply *ended = &told[0].reply;
    bool odd = m->odd || !is_status(ended, "OK");
    m->stuck |= is_error(ended) && !slice_starts(ended->bytes, "EXECABORT") &&
                !slice_starts(ended->bytes, "ERR DISCARD without MULTI");
    return conclude(m, odd && is_broken(got) ? broken() : m->was);
}

/* What the wait script says. */
static struct outcome lined_up(const struct model *m, const struct reply *reply)
{
    const struct reply *item = reply->items;
    size_t count = reply->kind == REPLY_ARRAY ? reply->count : 0;

    if (is_error(reply))
        return refused(&m->verb, reply);
    for (size_t i = 0; i < count; i++) {
        if (item[i].kind != REPLY_INTEGER)
            return broken();
    }
    if (count == 1 && item[0].integer == 1)
        return decided(OUTCOME_GRANTED, LEFT_UNKNOWN);
    if (count == 1 && item[0].integer == -1 && m->verb.kind == VERB_STAY)
        return no();
    if (count != (m->verb.test_listener ? 4 : 3) || item[0].integer != 0 ||
        item[1].integer < -2 || item[2].integer < 0 ||
        item[2].integer > UINT32_MAX)
        return broken();
    struct outcome o = decided(OUTCOME_BUSY, left_of(item[1].integer));
    o.ahead = (unsigned)item[2].integer;
    o.no_listener = m->verb.test_listener && item[3].integer == 0;
    return o;
}

static struct outcome raised_to(
    const struct model *m, const struct reply *reply)
{
    struct outcome mine = decided(OUTCOME_MINE, LEFT_UNKNOWN);

    mine.fence = (uint64_t)reply->integer;
    return one_of(m, reply,
        is_number(reply, 1) && reply->integer < INT64_C(1) << 53,
        is_number(reply, 0) && reply->integer == 0, mine, no());
}

static struct outcome listens(const struct model *m, const struct reply *reply)
{
    const struct reply *item = reply->items;
    bool yes = reply->kind == REPLY_ARRAY && reply->count == 3 &&
               item[0].kind == REPLY_STRING &&
               slice_equal(item[0].bytes, slice_of("subscribe")) &&
               item[1].kind == REPLY_STRING &&
               slice_equal(item[1].bytes, slice_of(CHANNEL)) &&
               item[2].kind == REPLY_INTEGER;

    struct outcome o = one_of(
        m, reply, yes, false, decided(OUTCOME_MINE, LEFT_UNKNOWN), nothing());
    if (is_broken(&o) && !is_error(reply))
        o.text = slice_of("unexpected ");
    return o;
}

/* Removed; handed over; left the line; removed without the right to hand it
 * over; removed with a gap. */
static struct outcome released(const struct model *m, const struct reply *reply)
{
    bool in_line = m->verb.client.len > 0;
    int64_t number = is_number(reply, 0) ? reply->integer : -1;
    bool gone = number == 1 || number == 2 || (number == 3 && in_line) ||
                number == 4 || number == 5;

    return one_of(
        m, reply, gone, number == 0, decided(OUTCOME_MINE, LEFT_UNKNOWN), no());
}

static bool script_reply(struct model *m, const struct reply *reply)
{
    if (is_error(reply) && m->step == 0 && error_is_noscript(reply->bytes))
        return goes_on(m, 1);
    switch (m->verb.kind) {
    case VERB_INSPECT:
        return conclude(m, inspected(m, reply));
    case VERB_EXTEND:
        return conclude(
            m, one_of(m, reply, is_number(reply, -1), is_number(reply, -2),
                   decided(OUTCOME_MINE, reply->integer), no()));
    case VERB_JOIN:
    case VERB_STAY:
        return conclude(m, lined_up(m, reply));
    case VERB_RAISE:
        return conclude(m, raised_to(m, reply));
    default:
        return conclude(m, released(m, reply));
    }
}

/* All replies of a step have come. True when the exchange is over. */
static bool model_judge(struct model *m, const struct told *told,
    const struct outcome *got, bool again)
{
    const struct reply *reply = &told[0].reply;

    switch (model_way(m)) {
    case WATCH:
        return watch_replies(m, told, got, again);
    case GETRANGE:
        return conclude(m, value_read(m, told, got));
    case SCRIPT:
        if (m->verb.kind != VERB_ACQUIRE)
            return script_reply(m, reply);
        return conclude(m, acquired(m, told));
    case SET_NX:
        return conclude(m, acquired(m, told));
    case SUBSCRIBE:
        return conclude(m, listens(m, reply));
    default:
        return conclude(
            m, one_of(m, reply, is_number(reply, 1) && reply->integer == 1,
                   is_number(reply, 0) && reply->integer == 0,
                   decided(OUTCOME_MINE, LEFT_UNKNOWN), no()));
    }
}

#endif
