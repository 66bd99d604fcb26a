/* SPDX-License-Identifier: MIT */
/*
 * The calls on a lock: what each of them begins, and when it is refused
 * because the lease has expired.
 */
#include "core/calls.h"

#include "base/deadline.h"
#include "core/settle.h"
#include "model/guard.h"

/* How long an acquire over several servers waits for one of them in a round:
 * this share of the TTL, within these limits. */
#define ANSWER_TIMEOUT_PER_TTL 20
#define ANSWER_TIMEOUT_MIN (50 * NS_PER_MS)
#define ANSWER_TIMEOUT_MAX (500 * NS_PER_MS)

static void begin_call(
    struct life *l, enum life_call call, uint64_t seed, uint64_t not_after)
{
    l->call = call;
    l->running = true;
    l->result = LIFE_OK;
    l->fault = FAULT_NONE;
    l->fence = 0;
    l->was_over = l->min_hold = l->no_token = l->not_claimed = false;
    l->line_due = l->not_own = false;
    l->gap_ms = 0;
    l->token_due = l->claim_asked = l->adopt_asked = l->cancelled = false;
    l->not_after = not_after;
    l->stragglers = 0;
    l->seed = seed;
}

static void begin_round(struct life *l, enum round_kind kind, uint32_t ttl_ms,
    uint64_t end, uint64_t now)
{
    struct round_terms terms = {
        .kind = kind,
        .servers = l->terms.servers,
        .ballots = l->vote.ballots,
        .ttl_ms = ttl_ms,
        .drift_ppm = l->terms.drift_ppm,
        .end = end,
    };
    l->request_ttl_ms = ttl_ms;
    vote_round(&l->vote, &terms, l->seed, now);
}

/* A call that asks all servers once. */
static void begin_single_round(struct life *l, enum life_call call,
    uint64_t seed, uint64_t not_after, uint64_t now)
{
    begin_call(l, call, seed, not_after);
    begin_round(l, call_traits[call].round, l->terms.max_ttl_ms,
        deadline_after(now, l->terms.timeout_ns), now);
}

/* How long one server may take in one round of an acquire. */
static uint64_t acquire_answer_timeout(const struct life *l)
{
    const struct life_terms *t = &l->terms;
    if (t->servers == 1)
        return earlier(t->timeout_ns, l->usable_ns);
    uint64_t ns = ms_to_ns(t->ttl_ms) / ANSWER_TIMEOUT_PER_TTL;
    ns = earlier(later(ns, ANSWER_TIMEOUT_MIN), ANSWER_TIMEOUT_MAX);
    ns = later(ns, 2 * t->copies_ns); /* there may be one before it */
    unsigned up = 0;
    for (unsigned i = 0; i < t->servers; i++)
        up += t->peers[i].link == PEER_UP;
    if (up < quorum_of(t->servers)) /* connecting takes longer */
        ns = t->timeout_ns;
    return earlier(earlier(ns, l->usable_ns / 2), t->timeout_ns);
}

static uint32_t acquire_ttl_ms(const struct life *l)
{
    return l->terms.ttl_ms > l->terms.min_hold_ms ? l->terms.ttl_ms
                                                  : l->terms.min_hold_ms;
}

/* What a grant needs besides. BEGIN draws the fencing token itself. */
static unsigned conditions_of(const struct life *l, enum life_call call)
{
    if (verb_traits[call_traits[call].verb].begins_work)
        return 1U << CONDITION_BEGIN;
    if (l->terms.fenced)
        return 1U << CONDITION_FENCE;
    return l->terms.copies_ns ? 1U << CONDITION_COPIES : 0;
}

static void begin_acquire(struct life *l, enum life_call call, uint64_t wait_ns,
    uint64_t end, uint64_t seed, uint64_t now)
{
    const struct life_terms *t = &l->terms;
    struct acquire_terms terms = {
        .servers = t->servers,
        .ballots = l->vote.ballots,
        .ttl_ms = acquire_ttl_ms(l),
        .drift_ppm = t->drift_ppm,
        .timeout_ns = t->timeout_ns,
        .answer_timeout_ns = acquire_answer_timeout(l),
        .wait_until = deadline_after(now, wait_ns),
        .end = earlier(end, deadline_after(now, later(wait_ns, t->timeout_ns))),
    };
    life_end_lease(l, now);
    begin_call(l, call, seed, TIME_LIMIT_NONE);
    l->requested = l->answered = 0;
    l->request_ttl_ms = terms.ttl_ms;
    vote_acquire(&l->vote, &terms, conditions_of(l, call), t->retry_first_ns,
        t->retry_max_ns, seed, now);
}

void life_acquire(struct life *l, uint64_t wait_ns, uint64_t seed, uint64_t now)
{
    begin_acquire(l, CALL_ACQUIRE, wait_ns, NEVER, seed, now);
}

void life_acquire_by(
    struct life *l, uint64_t wait_ns, uint64_t end, uint64_t seed, uint64_t now)
{
    begin_acquire(l, CALL_ACQUIRE, wait_ns, end, seed, now);
}

void life_begin(struct life *l, uint64_t wait_ns, uint64_t seed, uint64_t now)
{
    begin_acquire(l, CALL_BEGIN, wait_ns, NEVER, seed, now);
}

bool life_extend(struct life *l, uint32_t ttl_ms, uint64_t seed, uint64_t now)
{
    uint64_t end = deadline_after(now, l->terms.timeout_ns);
    /* The key must expire by the end of the maximum hold, rounded up to a
     * millisecond: nothing else removes it. */
    uint64_t left_ms = deadline_left(l->lease.ends, now) / NS_PER_MS + 1;
    if (!lease_extendable(&l->lease, now)) {
        lease_lose(&l->lease, now);
        return false;
    }
    if (guarded(GUARD_LAPSED))
        end = earlier(end, l->lease.promised);
    begin_call(l, CALL_EXTEND, seed, TIME_LIMIT_NONE);
    begin_round(l, ROUND_EXTEND, (uint32_t)earlier(ttl_ms, left_ms), end, now);
    return true;
}

/* A line would keep programs that know nothing of it away for as long as
 * somebody waits in it. So one GAP_PART-th of the time is left to them. After
 * short holds the server decides when: see wire/scripts/hand_over.lua. After a
 * long one this says how long the gap is; 0: it was short. */
#define GAP_PART 75
#define GAP_MIN (100 * NS_PER_MS)
#define GAP_MAX NS_PER_S
static uint32_t gap_ms(const struct life *l, uint64_t held_ns)
{
    uint64_t gap = held_ns / GAP_PART;
    if (l->terms.servers > 1 || gap < GAP_MIN)
        return 0;
    return (uint32_t)(earlier(gap, GAP_MAX) / NS_PER_MS);
}

bool life_release(struct life *l, uint64_t seed, uint64_t now)
{
    struct lease_rest rest = lease_rest(&l->lease, now);
    uint64_t end = deadline_after(now, l->terms.timeout_ns);
    if (now >= rest.ours_until) {
        life_end_keeping_key(l, now);
        return false;
    }
    if (guarded(GUARD_RELEASED))
        renewal_stop(l->renewal);
    begin_call(l, CALL_RELEASE, seed, rest.ours_until);
    l->was_over = !rest.held;
    lease_end(&l->lease, now);
    l->gap_ms = gap_ms(l, rest.held_ns);
    l->min_hold = rest.min_left_ms > 0;
    if (l->min_hold) /* then nothing is undone, whatever the result */
        begin_round(l, ROUND_CAP, rest.min_left_ms, end, now);
    else
        begin_round(l, ROUND_RELEASE, l->terms.max_ttl_ms, end, now);
    return true;
}

bool life_tell(struct life *l, enum once_state reported, bool own,
    uint64_t seed, uint64_t now)
{
    bool goes_on = reported == ONCE_CLEAR;
    enum round_kind kind = reported == ONCE_FAILED || reported == ONCE_DOUBT
                               ? ROUND_TELL_OPEN
                               : ROUND_TELL;
    struct lease_rest rest = lease_rest(&l->lease, now);
    uint64_t end = deadline_after(now, l->terms.timeout_ns);
    if (goes_on && !rest.held) {
        lease_lose(&l->lease, now);
        return false;
    }
    /* The key under another token is left alone. */
    begin_call(l, CALL_TELL, seed, own ? rest.ours_until : TIME_LIMIT_PASSED);
    if (!goes_on && own) {
        renewal_stop(l->renewal);
        lease_end(&l->lease, now);
        l->gap_ms = gap_ms(l, rest.held_ns);
    }
    begin_round(l, kind, goes_on || !own ? 0 : rest.min_left_ms, end, now);
    return true;
}

void life_adopt(struct life *l, bool own, uint64_t seed, uint64_t now)
{
    if (own) /* its key stays */
        life_end_keeping_key(l, now);
    else
        life_end_lease(l, now);
    begin_single_round(l, CALL_ADOPT, seed, TIME_LIMIT_NONE, now);
    l->token_due = !own;
    l->may_have_token =
        (1U << l->terms.servers) - 1; /* any server may have it */
}

void life_query(
    struct life *l, enum life_call call, uint64_t seed, uint64_t now)
{
    begin_single_round(l, call, seed, TIME_LIMIT_NONE, now);
}

bool life_break(struct life *l, bool own, uint64_t seed, uint64_t now)
{
    uint64_t ours_until = lease_ours_until(&l->lease);
    if (own && now >= ours_until) {
        life_end_keeping_key(l, now);
        return false;
    }
    if (own) {
        renewal_stop(l->renewal);
        lease_lose(&l->lease, now);
    }
    begin_single_round(
        l, CALL_BREAK, seed, own ? ours_until : TIME_LIMIT_NONE, now);
    l->not_own = !own;
    return true;
}

void life_line_up(struct life *l, struct line *line,
    const struct messages *messages, uint64_t now)
{
    const struct acquire_terms *a = &l->vote.acquire.terms;
    struct witness known = acquire_witness(&l->vote.acquire);
    struct line_terms terms = {
        .ttl_ms = a->ttl_ms,
        .max_ttl_ms = l->terms.max_ttl_ms,
        .drift_ppm = a->drift_ppm,
        .timeout_ns = a->timeout_ns,
        .answer_timeout_ns = a->answer_timeout_ns,
        .wait_until = a->wait_until,
        .end = a->end,
        .doubt = known.unanswered,
        .busy_until = known.busy_until,
        .messages = messages,
    };
    vote_line_up(&l->vote, line, &terms, l->seed, now);
}

void life_cancel(struct life *l)
{
    if (!l->running)
        return;
    l->to_abandon |= l->stragglers;
    l->stragglers = 0;
    l->cancelled = true;
    vote_cancel(&l->vote);
}

void life_discard(struct life *l)
{
    if (l->running && l->call == CALL_RELEASE) {
        if (l->min_hold)
            l->to_abandon |= l->may_have_token;
        else
            l->to_undo |= l->may_have_token;
        l->abandoned = true;
    } else {
        life_cancel(l);
    }
}
