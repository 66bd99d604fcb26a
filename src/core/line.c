/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line on one server: when a token joins, shows that it waits, is
 * granted the lock or gives up.
 *
 * Invariant: at most one request is under way; a token that may be in line when
 * another one takes its place has been undone before.
 */
#include "core/line.h"

#include "base/deadline.h"
#include "core/lease.h"
#include "model/guard.h"

/* A waiter shows that it is alive every beat, a tenth of its TTL within these
 * limits, and counts as dead after WINDOW_BEATS without. */
#define BEATS_PER_TTL 10
#define BEAT_LEAST_MS 100
#define BEAT_MOST_MS 3000
#define WINDOW_BEATS 3
/* In a long line that would be more than a server can answer. So for each
 * member ahead the beat is that part longer, up to BEAT_FAR_MS; patience in
 * scripts/line_wait.lua allows for it. */
#define BEAT_PLACES 64
#define BEAT_FAR_MS 5000
/* The first in line, and each waiter that no message can reach, asks whether
 * the lock is free every 50 to 100 ms, at random: a holder may have died, or
 * not know about the line. */
#define POLL_INTERVAL (100 * NS_PER_MS)
/* How often a key that never expires is inspected (see wire/exchange.c). */
#define VALUE_CHECK_INTERVAL NS_PER_S
/* Delays after a fault. */
#define RETRY_FIRST (10 * NS_PER_MS)
#define RETRY_MAX (500 * NS_PER_MS)

static uint32_t beat_ms(const struct line_terms *terms)
{
    uint32_t beat = terms->ttl_ms / BEATS_PER_TTL;
    return beat < BEAT_LEAST_MS  ? BEAT_LEAST_MS
           : beat > BEAT_MOST_MS ? BEAT_MOST_MS
                                 : beat;
}

/* ns, longer by 1/64 for each member ahead, but at most most. */
static uint64_t stretched(uint64_t ns, unsigned ahead, uint64_t most)
{
    uint64_t far = ns + ns * ahead / BEAT_PLACES;
    return later(ns, earlier(far, most));
}

/* A beat longer than the TTL that is wanted: the grant may be learnt that much
 * later. Not longer than max_ttl_ms, on which the restart quarantine relies. */
uint32_t line_lease_ms(const struct line_terms *terms)
{
    uint64_t lease = (uint64_t)terms->ttl_ms + beat_ms(terms);
    return (uint32_t)earlier(lease, later(terms->max_ttl_ms, terms->ttl_ms));
}

uint32_t line_window(const struct line_terms *terms)
{
    /* Rounded down, plus one tick for each end of the window. */
    return WINDOW_BEATS * beat_ms(terms) * WINDOW_TICKS / 1000 + 2;
}

/* ---------------------------------------------------------- what to do next */

static void ask_now(struct line *l)
{
    l->send_due = true;
    l->stay_at_once = false;
}

/* A new token joins at the end of the line, unless the wait is over by then. */
static void join_at(struct line *l, uint64_t at)
{
    l->joins = true;
    l->message_came = l->hint_pending = l->in_line = l->stay_at_once = false;
    l->ahead = UINT32_MAX;
    l->token_due = guarded(GUARD_JOIN_ONCE);
    l->send_due = false;
    l->act_at = at;
    if (at <= l->now && l->now < l->terms.wait_until)
        ask_now(l);
}

/* Nothing of the present token may stay at the server. */
static void give_up_token(struct line *l)
{
    l->late_grant_was_possible = l->late_grant_possible;
    l->late_grant_possible =
        l->late_grant_possible || l->in_flight || l->in_line;
    l->undo_due = l->undo_due || l->in_line;
    l->abandon_due = false;
    l->in_flight = l->send_due = l->in_line = false;
}

static void conclude(struct line *l, enum line_verdict verdict)
{
    if (verdict != LINE_YES) {
        give_up_token(l);
    } else {
        l->abandon_due |= l->in_flight; /* a late answer to STAY does no harm */
        l->in_flight = false;
    }
    l->send_due = l->token_due = false;
    l->decision = verdict;
}

/* The wait is over without a grant. The server may grant the lock to a token in
 * line until that is undone, whatever it refused. */
static enum line_verdict lost_verdict(const struct line *l)
{
    bool failed = l->fault != FAULT_NONE;
    struct witness w = {
        .unanswered = l->in_flight || l->late_grant_possible,
        .line_may_have_granted = l->in_line || l->vanished_from_line,
        .busy_until = failed ? 0 : l->busy_until,
    };
    if (l->granted_too_late && !failed)
        return LINE_EXPIRED;
    switch (witness_verdict(&w, l->now)) {
    case VERDICT_NO:
        return LINE_NO;
    case VERDICT_UNKNOWN:
        return LINE_MAY_GRANT;
    default:
        return LINE_DID_NOTHING;
    }
}

static uint64_t retry_delay(struct line *l)
{
    return deadline_after(l->now, backoff_next(&l->backoff));
}

/* The last moment at which a poll can still end in time, even if it takes twice
 * as long as the request that was answered last. */
static uint64_t last_poll(const struct line *l)
{
    uint64_t took = elapsed(l->sent_at, l->now);
    uint64_t slack = later(deadline_after(took, took), LAST_REQUEST_SLACK);
    slack = earlier(slack, l->terms.answer_timeout_ns);
    return earlier(l->terms.wait_until, deadline_before(l->terms.end, slack));
}

/* When the token has to show again that it waits: in time for its place, and
 * once more at the end of the wait. */
static void plan_stay(struct line *l)
{
    uint64_t beat = ms_to_ns(beat_ms(&l->terms));
    uint64_t last = last_poll(l);
    bool polls = l->ahead == 0 || !l->by_message;
    /* Who is not told learns of a grant by asking, while its lease runs. */
    uint64_t pause = polls ? stretched(POLL_INTERVAL, l->ahead, beat)
                           : stretched(beat, l->ahead, ms_to_ns(BEAT_FAR_MS));
    uint64_t jitter = pause / (polls ? 2 : 10);
    l->joins = false;
    l->act_at =
        deadline_after(l->now, pause - backoff_random(&l->backoff, jitter + 1));
    /* A key may still exist in the millisecond in which it expires. */
    if (polls && l->left_ms >= 0)
        l->act_at = earlier(
            l->act_at, deadline_after_ms(l->now, (uint64_t)l->left_ms + 1));
    if (l->now < last)
        l->act_at = earlier(l->act_at, last);
}

/* No other poll can end in time, and the last answer will not be valid at the
 * end of the wait: so the wait ends now. */
static bool was_last_poll(const struct line *l)
{
    uint64_t wait_until = l->terms.wait_until;
    return l->now >= wait_until ||
           (l->now >= last_poll(l) &&
               l->busy_until < deadline_after(wait_until, LAST_REQUEST_SLACK));
}

/* Sets the deadline of a lease that is counted from sent_at. False: too little
 * is left of it. */
static bool set_deadline(struct line *l, uint64_t sent_at)
{
    l->deadline =
        lease_deadline(sent_at, line_lease_ms(&l->terms), l->terms.drift_ppm);
    return l->deadline >= deadline_after_ms(l->now, LEASE_USABLE_MS);
}

/* The token has the lock, for a lease after sent_at at least. */
static void take_grant(struct line *l, uint64_t sent_at)
{
    l->granted_too_late = !set_deadline(l, sent_at);
    l->sent_at = sent_at;
    l->fault = FAULT_NONE;
    if (!l->granted_too_late) {
        conclude(l, LINE_YES);
        return;
    }
    give_up_token(l);
    join_at(l, l->now);
}

static void stay_now(struct line *l)
{
    if (l->in_flight)
        l->stay_at_once = true;
    else if (l->in_line && !l->joins)
        ask_now(l);
}

/* A message says that the token has the lock. The last request that was
 * answered may be older than a lease, since in a long line the beat grows and
 * the lease does not: then a STAY extends the lease, which is counted from
 * there. */
static void take_message(struct line *l)
{
    uint64_t sent_at = guarded(GUARD_ANSWERED) ? l->sent_at : l->now;
    if (set_deadline(l, sent_at))
        take_grant(l, sent_at);
    else
        stay_now(l);
}

/* ----------------------------------------------------------------- answers */

/* The token waits in line. */
static void take_wait(struct line *l, const struct outcome *o)
{
    if (l->joins)
        l->joined_on = o->connection;
    l->reconnected =
        !l->joins && (l->reconnected || o->connection != l->joined_on);
    l->sent_at = o->sent_at;
    l->left_ms = o->left_ms;
    l->busy_until = busy_until(o->sent_at, o->left_ms, l->terms.timeout_ns);
    l->ahead = l->hint_pending ? 0 : o->ahead;
    l->hint_pending = false;
    l->fault = FAULT_NONE;
    l->has_waited = true;
    l->granted_too_late = false;
    l->late_grant_possible =
        l->late_grant_possible && o->earlier_token_may_remain;
    backoff_reset(&l->backoff);
    if (l->message_came) { /* the message has overtaken the answer to JOIN */
        l->joins = l->message_came = false;
        take_message(l);
        return;
    }
    /* Somebody has to inspect a key that never expires: it may be what is
     * left of a timestamp lock. */
    if (l->ahead == 0 && l->left_ms == LEFT_FOREVER &&
        l->now >= deadline_after(l->value_checked_at, VALUE_CHECK_INTERVAL)) {
        l->value_checked_at = l->now;
        conclude(l, LINE_UNUSABLE);
        return;
    }
    if (was_last_poll(l)) {
        l->joins = false; /* it has: the token is in line */
        conclude(l, lost_verdict(l));
        return;
    }
    bool stay_at_once = l->stay_at_once;
    plan_stay(l);
    if (stay_at_once)
        ask_now(l);
}

static void take_fault(struct line *l, enum fault fault, bool unsure)
{
    l->fault = fault;
    if (l->joins) {
        l->in_line = unsure || l->message_came;
        l->late_grant_possible = l->late_grant_possible || unsure;
    }
    if (!fault_is_transient(fault)) {
        conclude(l, LINE_UNUSABLE);
    } else if (l->joins) {
        give_up_token(l);
        join_at(l, retry_delay(l));
    } else {
        l->act_at = retry_delay(l);
    }
}

/* A STAY found the token neither in line nor at the key. */
static void lost_place(struct line *l)
{
    if (l->joins) { /* no answer to JOIN: joining again would never end */
        take_fault(l, FAULT_NOT_REDIS, true);
        return;
    }
    l->fault = FAULT_NONE;
    l->vanished_from_line = true;
    l->in_line = false;
    give_up_token(l);
    join_at(l, l->now);
}

void line_outcome(struct line *l, const struct outcome *o, uint64_t now)
{
    l->now = later(l->now, now);
    if (!l->in_flight)
        return;
    l->in_flight = false;
    if (o->kind != OUTCOME_BUSY)
        l->hint_pending = false;
    switch (o->kind) {
    case OUTCOME_GRANTED:
        take_grant(l, o->sent_at);
        break;
    case OUTCOME_BUSY:
        take_wait(l, o);
        break;
    case OUTCOME_NOT_MINE:
        lost_place(l);
        break;
    case OUTCOME_FAULT:
        take_fault(l, o->fault, o->unsure);
        break;
    default: /* not an answer to this verb: it may have been applied */
        take_fault(l, FAULT_NOT_REDIS, true);
        break;
    }
}

void line_on_granted(struct line *l, unsigned connection, uint64_t now)
{
    bool same = !l->reconnected && connection == l->joined_on &&
                l->terms.messages->number == l->subscription;
    l->now = later(l->now, now);
    if (l->decision != LINE_OPEN || !l->in_line)
        return;
    if (l->joins)
        l->message_came = true;
    else if (!same && guarded(GUARD_SAME_CONNECTION))
        stay_now(l);
    else
        take_message(l);
}

void line_on_first(struct line *l, uint64_t now)
{
    l->now = later(l->now, now);
    if (l->decision != LINE_OPEN || !l->in_line)
        return;
    l->hint_pending = l->in_flight;
    if (l->in_flight || l->joins)
        return;
    l->ahead = 0;
    l->left_ms = LEFT_UNKNOWN;
    plan_stay(l);
}

void line_on_unknown(struct line *l, uint64_t now)
{
    l->now = later(l->now, now);
    if (l->decision == LINE_OPEN && l->in_line)
        stay_now(l);
}

void line_messages_changed(struct line *l, uint64_t now)
{
    l->now = later(l->now, now);
    if (l->decision != LINE_OPEN || !l->in_line)
        return;
    if (l->terms.messages->state == MESSAGES_UP) {
        stay_now(l); /* while it could not be told it was passed over */
    } else if (l->terms.messages->state == MESSAGES_NONE && l->by_message) {
        l->vanished_from_line = l->vanished_from_line || !l->joins;
        give_up_token(l); /* it would be passed over for ever */
        join_at(l, l->now);
    }
}

/* -------------------------------------------------------------------- effects
 */

void line_start(struct line *l, const struct line_terms *terms,
    bool token_is_fresh, uint64_t seed, uint64_t now)
{
    uint64_t value_checked_at = l->value_checked_at;
    *l = (struct line){.terms = *terms,
        .left_ms = LEFT_UNKNOWN,
        .value_checked_at = value_checked_at,
        .late_grant_possible = terms->doubt,
        .busy_until = terms->busy_until,
        .sent_at = now,
        .now = now};
    backoff_init(&l->backoff, RETRY_FIRST, RETRY_MAX, seed);
    join_at(l, now);
    l->token_due = !token_is_fresh;
    ask_now(l); /* once, however short the wait is */
}

bool line_joins(const struct line *l)
{
    return l->joins;
}

static void count_as_sent(struct line *l)
{
    l->send_due = false;
    l->in_flight = true;
    l->in_line = true;
    if (l->joins) {
        const struct messages *m = l->terms.messages;
        l->by_message = m->state != MESSAGES_NONE;
        l->subscription = m->number + (m->state != MESSAGES_UP);
    }
    l->act_at = earlier(
        deadline_after(l->now, l->terms.answer_timeout_ns), l->terms.end);
}

bool line_next(struct line *l, struct effect *effect)
{
    effect->server = 0;
    if (l->abandon_due) {
        l->abandon_due = false;
        effect->kind = EFFECT_ABANDON;
    } else if (l->undo_due) {
        l->undo_due = false;
        effect->kind = EFFECT_UNDO;
    } else if (!l->send_due) {
        return false;
    } else if (l->token_due) {
        l->token_due = false;
        effect->kind = EFFECT_TOKEN;
    } else {
        effect->kind = EFFECT_SEND;
        count_as_sent(l);
    }
    return true;
}

void line_withdrawn(struct line *l)
{
    l->late_grant_possible = l->late_grant_was_possible;
    if (l->decision == LINE_MAY_GRANT && l->joins)
        l->decision = lost_verdict(l);
}

/* The request under way was not answered in time. */
static void give_up_request(struct line *l)
{
    l->fault = FAULT_TIMEOUT;
    if (l->joins) {
        give_up_token(l);
        join_at(l, retry_delay(l));
    } else {
        l->in_flight = l->hint_pending = false;
        l->abandon_due = true;
        l->act_at = retry_delay(l);
    }
}

void line_tick(struct line *l, uint64_t now)
{
    l->now = later(l->now, now);
    if (l->decision != LINE_OPEN || l->now < line_wake(l))
        return;
    /* A STAY that was planned before the end of the wait is still sent. */
    bool stays = !l->in_flight && !l->joins && l->act_at <= l->terms.wait_until;
    if (l->in_flight && l->now < l->terms.end) {
        give_up_request(l);
    } else if (l->now >= l->terms.wait_until &&
               !(stays && l->now < l->terms.end)) {
        conclude(l, lost_verdict(l));
    } else {
        ask_now(l);
    }
}

void line_cancel(struct line *l)
{
    if (l->decision == LINE_OPEN)
        conclude(l, LINE_CANCELLED);
}

uint64_t line_wake(const struct line *l)
{
    if (l->decision != LINE_OPEN)
        return NEVER;
    return l->in_flight ? l->act_at : earlier(l->act_at, l->terms.wait_until);
}

enum line_verdict line_verdict(const struct line *l)
{
    bool pending = l->abandon_due || l->undo_due || l->token_due || l->send_due;
    return pending ? LINE_OPEN : l->decision;
}
