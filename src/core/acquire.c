/* SPDX-License-Identifier: MIT */
/*
 * Rounds of an acquire: when they start, how they are decided and undone.
 *
 * Invariant: a lost round passes through PHASE_ENDING before the next round
 * starts or a verdict is final. There an EFFECT_UNDO is issued for every server
 * that granted or may have granted, so no round leaves a key behind.
 */
#include "core/acquire.h"

#include "base/deadline.h"
#include "core/lease.h"
#include "core/contention.h"
#include "model/guard.h"

/* Up to this delay before the second round, the first round does not ask for
 * the holder's TTL: that would cost every acquire a second command, to save a
 * wait of this length at most. */
#define SHORT_DELAY (10 * NS_PER_MS)

/* The first rounds do not ask whether several hold the lock: that takes a
 * script instead of PTTL. It is asked after ROUNDS_UNASKED rounds that were
 * lost to a holder. After ROUNDS_LOST rounds that several holders have won,
 * nobody joins them until the next round and the one after that, but no longer
 * than HOLD_BACK_MAX ms. So rounds 1 and 2 do not ask, round 3 asks and is
 * lost, and round 4 is the first that keeps others from joining. In a model of
 * 8 readers and 1 or 2 writers no writer is ever granted the lock without that;
 * from the first round on the readers wait for 2.9 s (p99), from the fourth for
 * 0.2 s. */
#define ROUNDS_UNASKED 2
#define ROUNDS_LOST 1
#define HOLD_BACK_LEAST 60
#define HOLD_BACK_MAX 1000

/* In its first round a call respects up to this much of a server's reconnect
 * delay, so that calls in quick succession do not reconnect each time. A
 * majority that answers at once does not need that server. */
#define CONNECT_GRACE (10 * NS_PER_MS)

/* May a token of this call be at a quorum? It may be the token of this round,
 * or an earlier one at a server that has not answered in this round, or whose
 * cleanup is not over. clean: servers that certainly have no earlier token.
 * Call it after the undo was sent: until then the parts do not show the grants.
 */
static bool token_may_be_at_quorum(const struct acquire *a)
{
    struct tally t = tally_of(a->terms.ballots, a->terms.servers);
    unsigned clean = t.yes + t.no - a->doubtful_busy;
    return t.yes + t.unsure >= t.quorum ||
           (a->earlier_token_left && t.servers - clean >= t.quorum);
}

/* The same, where what undoes a void grant (one that did not count) may not
 * have been carried out yet. */
static bool token_or_void_may_be_at_quorum(const struct acquire *a)
{
    struct tally t = tally_of(a->terms.ballots, a->terms.servers);
    unsigned voids = 0;
    for (unsigned i = 0; i < a->terms.servers; i++)
        voids += a->terms.ballots[i].is_void;
    unsigned clean = t.yes + voids + t.no - a->doubtful_busy;
    return t.yes + t.unsure + voids >= t.quorum ||
           t.servers - clean >= t.quorum;
}

/* A single server that said "busy", or certainly failed, does not have the
 * token, so the token can be used again. */
static bool token_is_unused(const struct acquire *a)
{
    enum part part = a->terms.ballots[0].part;
    return a->rounds > 0 && a->terms.servers == 1 && !a->token_spoilt &&
           (part == PART_NO || part == PART_FAULT);
}

/* The last moment at which another round may start: it must be able to end in
 * time even if it takes twice as long as the slowest so far. */
static uint64_t latest_retry(const struct acquire *a)
{
    uint64_t slack = deadline_after(a->longest_round, a->longest_round);
    slack =
        earlier(later(slack, LAST_REQUEST_SLACK), a->terms.answer_timeout_ns);
    return earlier(a->terms.wait_until, deadline_before(a->terms.end, slack));
}

static void plan_connecting(struct acquire *a)
{
    uint64_t grace = a->rounds > 1 ? 0 : CONNECT_GRACE;
    a->connect_by =
        later(latest_retry(a), deadline_after(a->round_started, grace));
}

/* For how long this round asks that nobody joins several holders. */
static uint32_t hold_back_ms(const struct acquire *a)
{
    if (a->lost_to_several < ROUNDS_LOST)
        return 0;
    uint64_t delay = a->terms.servers == 1
                         ? backoff_longest(&a->backoff)
                         : contention_longest(&a->backoff, a->contended + 1U,
                               a->longest_round);
    uint64_t ms = earlier(delay / NS_PER_MS, HOLD_BACK_MAX) * 2;
    return (uint32_t)earlier(later(ms, HOLD_BACK_LEAST), HOLD_BACK_MAX);
}

static void begin_round(struct acquire *a)
{
    if (!token_is_unused(a) && (a->rounds == 0 || guarded(GUARD_FRESH_TOKEN)))
        a->token_wanted = true;
    if (a->rounds > 0)
        a->earlier_token_left = token_may_be_at_quorum(a);
    for (unsigned i = 0; i < a->terms.servers; i++)
        a->terms.ballots[i] = (struct ballot){.part = PART_TO_SEND};
    a->phase = PHASE_ROUND;
    a->rounds++;
    a->round_started = a->now;
    a->round_end = earlier(
        deadline_after(a->now, a->terms.answer_timeout_ns), a->terms.end);
    a->left_ms = LEFT_UNKNOWN;
    a->round_took = 0;
    a->unanswered = a->doubtful_busy = a->permanent = 0;
    a->round_fault = FAULT_NONE;
    a->grant_did_not_last = a->token_is_held = a->token_spoilt = false;
    a->round_busy_until = NEVER;
    a->may_line_up = false;
    /* What undoes a grant may not have been carried out yet. */
    a->earlier_token_possible = a->earlier_token_left || a->had_void_grant ||
                                (a->terms.servers > 1 && a->rounds > 1);
    a->want_left = a->rounds > 1 || (a->terms.wait_until > a->round_started &&
                                        a->backoff.first_ns > SHORT_DELAY);
    if (a->lost_to_holders >= ROUNDS_UNASKED) {
        a->asks_kind = true;
        a->several_hold = false;
        a->hold_back_ms = hold_back_ms(a);
    }
    plan_connecting(a);
}

void acquire_start(
    struct acquire *a, const struct acquire_terms *terms, uint64_t now)
{
    struct backoff backoff = a->backoff;
    *a = (struct acquire){.terms = *terms, .backoff = backoff, .now = now};
    for (unsigned i = 0; i < terms->servers; i++)
        terms->ballots[i] = (struct ballot){.part = PART_IDLE};
    begin_round(a);
}

struct witness acquire_witness(const struct acquire *a)
{
    return (struct witness){token_may_be_at_quorum(a), false, a->busy_until};
}

/* The call ends without a grant. */
static void set_end_verdict(struct acquire *a, enum verdict verdict)
{
    a->decision = verdict;
    /* Nothing failed, but the last answer is too old, or missing. */
    if ((verdict == VERDICT_UNKNOWN || verdict == VERDICT_FAULT) &&
        a->round_fault == FAULT_NONE)
        a->fault = FAULT_TIMEOUT;
}

static void end_without_grant(struct acquire *a)
{
    struct witness w = acquire_witness(a);
    enum verdict verdict = witness_verdict(&w, a->now);
    if (verdict == VERDICT_NO && a->had_void_grant &&
        token_or_void_may_be_at_quorum(a))
        verdict = VERDICT_UNKNOWN;
    if (a->recorded)
        a->decision = VERDICT_RECORDED;
    else if (a->grant_did_not_last)
        a->decision = VERDICT_EXPIRED;
    else
        set_end_verdict(a, verdict);
}

static uint64_t retry_delay(struct acquire *a)
{
    if (a->terms.servers == 1 || !a->was_busy)
        return backoff_next(&a->backoff);
    if (a->contended < UINT16_MAX)
        a->contended++;
    return contention_delay(&a->backoff, a->contended,
        a->unanswered ? 0 : a->now - a->round_started);
}

static void plan_retry(struct acquire *a, uint64_t limit)
{
    uint64_t at = deadline_after(a->now, retry_delay(a));
    if (a->was_busy && a->left_ms >= 0) {
        /* A key may still exist in the millisecond in which it expires, so add
         * one; the random rest keeps waiters from retrying all at once. */
        uint64_t gone = deadline_after_ms(a->now, (uint64_t)a->left_ms + 1);
        at = earlier(
            at, deadline_after(gone, backoff_random(&a->backoff, NS_PER_MS)));
    }
    a->retry_at = earlier(at, limit);
    a->phase = PHASE_WAITING;
    a->may_line_up = a->terms.servers == 1 && a->was_busy && !a->line_fails;
}

/* All effects of a decided round have been taken. */
static void finish_round(struct acquire *a)
{
    a->phase = PHASE_OVER;
    if (a->decision != VERDICT_OPEN)
        return;
    uint64_t limit = latest_retry(a);
    bool hopeless =
        a->recorded ||
        a->permanent > a->terms.servers - quorum_of(a->terms.servers);
    if (!hopeless && limit > a->now)
        plan_retry(a, limit);
    else
        end_without_grant(a);
}

static void end_round(struct acquire *a)
{
    if (!a->unanswered) /* silence does not show how long a round takes */
        a->longest_round = later(a->longest_round, a->round_took);
    if (a->round_fault != FAULT_NONE)
        a->fault = a->round_fault;
    a->phase = PHASE_ENDING;
    /* With no effects left, nothing would call acquire_next() to do this. */
    if (!parts_pending(a->terms.ballots, a->terms.servers))
        finish_round(a);
}

/* Was this round lost because another client holds the lock? Not if failed
 * servers alone made a quorum impossible. A round that was cut off by the end
 * of the call proves nothing new: then an earlier "busy" goes on to count,
 * unless the answers contradict it. A busy answer that our own earlier token
 * may explain is not enough. */
static void note_holder(struct acquire *a)
{
    struct tally t = tally_of(a->terms.ballots, a->terms.servers);
    unsigned able = t.yes + t.no + t.open;
    bool cut_off = a->unanswered > 0 && a->round_end == a->terms.end;
    /* A busy answer counts at least until now (or one timeout after the round
     * began), even if the key was about to expire. */
    uint64_t least = deadline_after(a->round_started, a->terms.timeout_ns);
    a->was_busy = !a->grant_did_not_last && able >= t.quorum;
    if (a->was_busy && a->lost_to_holders < ROUNDS_UNASKED)
        a->lost_to_holders++;
    if (a->was_busy && a->several_hold && a->lost_to_several < ROUNDS_LOST)
        a->lost_to_several++;
    if (a->was_busy && t.no > a->doubtful_busy)
        a->busy_until = later(a->round_busy_until, earlier(a->now, least));
    else if (!cut_off || able + a->unanswered < t.quorum)
        a->busy_until = 0;
}

static void lose_round(struct acquire *a)
{
    note_holder(a);
    for (unsigned i = 0; i < a->terms.servers; i++) {
        struct ballot *b = &a->terms.ballots[i];
        if (b->part == PART_TO_SEND) {
            b->part = PART_FAULT; /* never sent, so never applied */
        } else if (b->part == PART_YES || b->part == PART_SENT ||
                   b->part == PART_UNSURE) {
            b->next_part = b->part == PART_YES ? PART_YES
                           : b->is_void        ? PART_FAULT
                                               : PART_UNSURE;
            b->part = PART_TO_UNDO;
        }
    }
    end_round(a);
}

/* Servers that have not answered may grant later. That is harmless: the release
 * goes to all of them, after the grant. */
static void win_round(struct acquire *a, uint64_t deadline)
{
    a->deadline = deadline;
    a->decision = VERDICT_YES;
    for (unsigned i = 0; i < a->terms.servers; i++) {
        struct ballot *b = &a->terms.ballots[i];
        if (b->part == PART_TO_SEND || b->part == PART_SENT)
            b->part = b->part == PART_SENT ? PART_TO_ABANDON : PART_IDLE;
    }
    end_round(a);
}

static uint64_t earliest_sent(const struct acquire *a)
{
    const struct ballot *b = a->terms.ballots;
    uint64_t first = NEVER;
    for (unsigned i = 0; i < a->terms.servers; i++, b++)
        first = b->part == PART_YES ? earlier(first, b->sent_at) : first;
    return first;
}

static void decide_acquire(struct acquire *a)
{
    struct tally t = tally_of(a->terms.ballots, a->terms.servers);
    if (t.yes >= t.quorum) {
        uint64_t deadline = lease_deadline(
            earliest_sent(a), a->terms.ttl_ms, a->terms.drift_ppm);
        a->grant_did_not_last = a->now >= deadline;
        if (a->grant_did_not_last)
            lose_round(a);
        else
            win_round(a, deadline);
    } else if (t.yes + t.open < t.quorum) {
        lose_round(a);
    }
}

static void record_acquire_fault(
    struct acquire *a, unsigned server, enum fault fault, bool unsure)
{
    /* The line has granted the lock to this token. */
    unsure = unsure || a->token_is_held;
    a->terms.ballots[server].part = unsure ? PART_UNSURE : PART_FAULT;
    a->round_fault = fault_worse(a->round_fault, fault);
    if (!fault_is_transient(fault))
        a->permanent++;
}

/* The server has granted it, and that does not count. If the round is lost, it
 * is undone, which is certain; what deletes the key may be late, so the next
 * round has another token. If the others grant the lock, the key stays: what
 * deletes it might come after an extension. */
static void record_void_grant(
    struct acquire *a, unsigned server, enum fault fault)
{
    record_acquire_fault(a, server, fault, true);
    a->terms.ballots[server].is_void = true;
    a->had_void_grant = true;
    a->token_spoilt = guarded(GUARD_VOID_TOKEN);
}

static void record_busy(
    struct acquire *a, unsigned server, const struct outcome *outcome)
{
    int64_t left_ms = outcome->left_ms;
    a->terms.ballots[server].part = PART_NO;
    a->round_busy_until = earlier(a->round_busy_until,
        busy_until(outcome->sent_at, left_ms, a->terms.timeout_ns));
    a->token_spoilt = a->token_spoilt || outcome->unsure;
    a->several_hold = a->several_hold || outcome->several_holders;
    a->doubtful_busy =
        (unsigned char)(a->doubtful_busy + outcome->earlier_token_may_remain);
    /* Several holders (a split vote): retry when the first lease ends. */
    if (left_ms >= 0 && (a->left_ms < 0 || left_ms < a->left_ms))
        a->left_ms = left_ms;
    else if (a->left_ms == LEFT_UNKNOWN)
        a->left_ms = left_ms;
}

void acquire_outcome(struct acquire *a, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct ballot *b = &a->terms.ballots[server];
    a->now = later(a->now, now);
    if (server >= a->terms.servers || b->part != PART_SENT)
        return;
    uint64_t began = later(a->round_started, outcome->tried_at);
    a->round_took = later(a->round_took, elapsed(began, a->now));
    switch (outcome->kind) {
    case OUTCOME_GRANTED:
        b->part = PART_YES;
        b->sent_at = guarded(GUARD_SEND_TIME) ? outcome->sent_at : a->now;
        break;
    case OUTCOME_BUSY:
        record_busy(a, server, outcome);
        break;
    case OUTCOME_RECORDED:
        a->recorded = true;
        b->part = PART_NO;
        break;
    case OUTCOME_FAULT:
        if (outcome->applied)
            record_void_grant(a, server, outcome->fault);
        else
            record_acquire_fault(a, server, outcome->fault, outcome->unsure);
        break;
    default:
        if (outcome->kind == OUTCOME_NOT_MINE && a->token_is_held) {
            b->part = PART_NO; /* what the line has granted is over */
            a->grant_did_not_last = true;
        } else { /* not an answer to this verb: it may have been applied */
            record_acquire_fault(a, server, FAULT_NOT_REDIS, true);
        }
        break;
    }
    decide_acquire(a);
}

bool acquire_next(struct acquire *a, struct effect *effect)
{
    struct ballot *b = a->terms.ballots;
    unsigned servers = a->terms.servers, i = 0;
    bool more = true;
    if (part_find(b, servers, PART_TO_SEND, &i)) {
        effect->kind = a->token_wanted ? EFFECT_TOKEN : EFFECT_SEND;
        if (!a->token_wanted)
            b[i].part = PART_SENT;
        a->token_wanted = false;
    } else if (part_find(b, servers, PART_TO_UNDO, &i)) {
        effect->kind = EFFECT_UNDO;
        b[i].part = b[i].next_part;
    } else if (part_find(b, servers, PART_TO_ABANDON, &i)) {
        effect->kind = EFFECT_ABANDON;
        b[i].part = PART_IDLE;
    } else {
        more = false;
    }
    effect->server = i;
    if (more)
        return true;
    if (a->phase == PHASE_ENDING)
        finish_round(a);
    effect->verdict = acquire_verdict(a);
    effect->fault = a->fault;
    effect->wake = acquire_wake(a);
    return false;
}

void acquire_withdrawn(struct acquire *a, unsigned server)
{
    if (a->phase == PHASE_ENDING && server < a->terms.servers &&
        !a->token_is_held && a->terms.ballots[server].part == PART_UNSURE)
        a->terms.ballots[server].part = PART_FAULT;
}

/* The round has timed out: a server that has not answered may have applied the
 * request. */
static void time_out_round(struct acquire *a)
{
    for (unsigned i = 0; i < a->terms.servers; i++) {
        enum part part = a->terms.ballots[i].part;
        if (part != PART_SENT && part != PART_TO_SEND)
            continue;
        record_acquire_fault(a, i, FAULT_TIMEOUT, part == PART_SENT);
        a->unanswered++;
    }
    lose_round(a);
}

void acquire_tick(struct acquire *a, uint64_t now)
{
    a->now = later(a->now, now);
    if (a->now < acquire_wake(a))
        return;
    if (a->phase == PHASE_ROUND) {
        time_out_round(a);
    } else if (a->phase == PHASE_WAITING && a->now < a->terms.end) {
        begin_round(a);
    } else if (a->phase == PHASE_WAITING) { /* too late for another round */
        a->phase = PHASE_OVER;
        end_without_grant(a);
    }
}

void acquire_cancel(struct acquire *a)
{
    if (a->decision != VERDICT_OPEN)
        return;
    a->decision = VERDICT_CANCELLED;
    if (a->phase == PHASE_ROUND)
        lose_round(a);
    else if (a->phase == PHASE_WAITING)
        a->phase = PHASE_OVER;
}

/* The parts still show the grants: until another round is answered the token
 * may be at a quorum, and token_may_be_at_quorum() says so. */
void acquire_again(struct acquire *a, const struct fence *fence, uint64_t now)
{
    a->now = later(a->now, now);
    bool cancelled = fence->decision == VERDICT_CANCELLED;
    a->decision = cancelled ? VERDICT_CANCELLED : VERDICT_OPEN;
    a->deadline = 0;
    a->was_busy = false;
    a->busy_until = 0;
    a->grant_did_not_last =
        fence->decision == VERDICT_NO; /* our own token is gone */
    a->fault = a->round_fault = fence->fault;
    a->permanent = fence->permanent;
    a->unanswered = (unsigned char)fence->unanswered;
    if (!a->unanswered)
        a->longest_round = later(a->longest_round, a->now - a->round_started);
    finish_round(a);
}

/* ------------------------------------------------------------------ in line */

bool acquire_line_up(struct acquire *a)
{
    bool unused = a->phase == PHASE_WAITING && token_is_unused(a);
    a->terms.ballots[0].part = PART_IDLE; /* the next round: a fresh token */
    a->token_wanted = false;
    a->retry_at = NEVER;
    a->phase = PHASE_WAITING;
    a->may_line_up = false;
    plan_connecting(a);
    return unused;
}

void acquire_granted(
    struct acquire *a, uint64_t sent_at, uint64_t deadline, uint64_t now)
{
    a->now = later(a->now, now);
    a->terms.ballots[0].part = PART_YES;
    a->terms.ballots[0].sent_at = sent_at;
    a->deadline = deadline;
    a->round_started = a->now; /* the wait in line was no part of a round */
    a->decision = VERDICT_YES;
    a->phase = PHASE_OVER;
}

void acquire_one_more_round(struct acquire *a, uint64_t now)
{
    a->now = later(a->now, now);
    /* If the wait has ended by now, this takes a little longer. */
    a->terms.end = later(a->terms.end,
        earlier(
            deadline_after(a->now, a->terms.answer_timeout_ns), a->deadline));
    a->decision = VERDICT_OPEN; /* its deadline stays: see life_lasts_until() */
    a->terms.ballots[0].part = PART_IDLE;
    begin_round(a);
    a->token_wanted = false;
    a->token_spoilt = guarded(GUARD_FRESH_TOKEN); /* it has been in line */
    a->busy_until = 0;                            /* it holds the lock */
    a->token_is_held = true;
}

void acquire_ended(struct acquire *a, enum verdict verdict, enum fault fault,
    int64_t left_ms, uint64_t now)
{
    a->now = later(a->now, now);
    a->fault = a->round_fault = fault;
    a->left_ms = left_ms;
    set_end_verdict(a, verdict);
    a->phase = PHASE_OVER;
}

void acquire_leave_line(struct acquire *a, enum fault fault, bool doubt,
    uint64_t busy_until, uint64_t now)
{
    a->now = later(a->now, now);
    a->earlier_token_left = doubt;
    a->busy_until = busy_until;
    a->line_fails = fault != FAULT_NONE;
    begin_round(a);
}
