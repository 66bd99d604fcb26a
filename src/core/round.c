/* SPDX-License-Identifier: MIT */
/*
 * Rounds of all verbs but acquire: effects, retries and counts.
 *
 * Invariant: a server is counted once, by its first answer. After a try that
 * may have been applied, an answer counts only if it would be the same for a
 * verb that is applied twice.
 */
#include "core/round.h"

#include "base/deadline.h"
#include "core/lease.h"
#include "model/guard.h"

#define MAX_TRIES 3
#define MAX_TTL_MS UINT32_C(0x7fffffff)

/* How the kinds of rounds differ; one row for each. */
static const struct round_traits {
    bool may_change;  /* a request that failed may have been applied */
    bool reads;       /* each answer says what is there, a value or nothing */
    bool deletes;     /* it is undone where it may be unfinished */
    bool may_end;     /* once it was applied, the token may be there no more */
    bool is_unbroken; /* the token must have been there all the time */
    /* For how long MINE says that the key stays. */
    enum { STAYS_UNKNOWN, STAYS_ASKED, STAYS_SEEN } stays;
} traits[] = {
    [ROUND_EXTEND] = {.may_change = true,
        .is_unbroken = true,
        .stays = STAYS_ASKED},
    [ROUND_RELEASE] = {.may_change = true, .deletes = true, .may_end = true},
    [ROUND_CAP] = {.may_change = true, .is_unbroken = true, .may_end = true},
    [ROUND_ADOPT] = {.stays = STAYS_SEEN},
    [ROUND_INSPECT] = {.reads = true},
    [ROUND_TELL] = {.may_change = true},
    [ROUND_TELL_OPEN] = {.may_change = true, .may_end = true},
};

static const struct round_traits *traits_of(const struct round *r)
{
    return &traits[r->terms.kind];
}

void round_start(struct round *r, const struct round_terms *terms, uint64_t now)
{
    struct backoff backoff = r->backoff;
    *r = (struct round){.terms = *terms, .backoff = backoff};
    (void)now; /* every server is asked at once, whatever the time */
    for (unsigned i = 0; i < r->terms.servers; i++) {
        r->terms.ballots[i] =
            (struct ballot){.part = PART_TO_SEND, .again_at = NEVER};
    }
}

/* All effects of a decided round have been taken. */
static void finish_round(struct round *r)
{
    r->phase = PHASE_OVER;
    if (r->decision != VERDICT_OPEN)
        return;
    struct tally t = tally_of(r->terms.ballots, r->terms.servers);
    r->decision =
        t.yes + t.unsure >= t.quorum ? VERDICT_UNKNOWN : VERDICT_FAULT;
    for (unsigned i = 0; i < r->terms.servers; i++)
        r->fault = fault_worse(r->fault, r->terms.ballots[i].why);
}

/* How a server that has not answered counts at the end of the round. */
static enum part closing_vote(struct round *r, unsigned server)
{
    enum part part = r->terms.ballots[server].part;
    if (part != PART_TO_SEND && part != PART_SENT && part != PART_IDLE)
        return part;
    if (part == PART_SENT || r->terms.ballots[server].why == FAULT_NONE)
        r->terms.ballots[server].why = FAULT_TIMEOUT;
    bool unsure = part == PART_SENT || r->terms.ballots[server].was_unsure;
    return unsure && traits_of(r)->may_change ? PART_UNSURE : PART_FAULT;
}

/* Ends the round. VERDICT_OPEN: the verdict follows from the votes once all
 * effects have been taken. */
static void conclude_round(struct round *r, enum verdict verdict)
{
    r->decision = verdict;
    for (unsigned i = 0; i < r->terms.servers; i++) {
        bool asked = r->terms.ballots[i].part == PART_SENT;
        r->terms.ballots[i].next_part = closing_vote(r, i);
        /* A release must delete the key, also at a server to which it was not
         * sent. */
        if (traits_of(r)->deletes && !r->terms.ballots[i].has_answered)
            r->terms.ballots[i].part = PART_TO_UNDO;
        else if (asked)
            r->terms.ballots[i].part = PART_TO_ABANDON;
        else
            r->terms.ballots[i].part = r->terms.ballots[i].next_part;
    }
    r->phase = PHASE_ENDING;
    if (!parts_pending(r->terms.ballots, r->terms.servers))
        finish_round(r);
}

/* Exactly a quorum has said MINE, because that decided the vote. So a quorum
 * keeps the key until the earliest of their deadlines. */
static uint64_t quorum_deadline(const struct round *r)
{
    uint64_t deadline = NEVER;
    for (unsigned i = 0; i < r->terms.servers; i++) {
        if (r->terms.ballots[i].part == PART_YES)
            deadline = earlier(deadline, r->terms.ballots[i].until);
    }
    return deadline;
}

static enum verdict verdict_so_far(const struct round *r, const struct tally *t)
{
    unsigned heard = t->yes + t->no + t->fault + t->unsure;
    if (traits_of(r)->reads) {
        if (t->no >= t->quorum)
            return VERDICT_NO;
        bool may_be_free = t->servers - heard + t->no >= t->quorum;
        return t->yes > 0 && !may_be_free ? VERDICT_YES : VERDICT_OPEN;
    }
    if (t->yes >= t->quorum)
        return VERDICT_YES;
    return t->no > t->servers - t->quorum ? VERDICT_NO : VERDICT_OPEN;
}

static void decide_round(struct round *r)
{
    struct tally t = tally_of(r->terms.ballots, r->terms.servers);
    enum verdict verdict = verdict_so_far(r, &t);
    bool all_heard = t.yes + t.no + t.fault + t.unsure == t.servers;
    if (verdict == VERDICT_YES)
        r->deadline = quorum_deadline(r);
    if (verdict != VERDICT_OPEN || all_heard)
        conclude_round(r, verdict);
}

/* The deadline that this MINE of server gives; 0 if the verb gives none. */
static uint64_t mine_until(
    const struct round *r, unsigned server, int64_t left_ms)
{
    uint32_t ttl_ms = 0;
    if (traits_of(r)->stays == STAYS_UNKNOWN)
        return 0;
    if (traits_of(r)->stays == STAYS_ASKED)
        ttl_ms = r->terms.ttl_ms;
    else if (left_ms == LEFT_FOREVER) /* the key itself has no deadline */
        ttl_ms = r->terms.ttl_ms;
    else if (left_ms > MAX_TTL_MS)
        ttl_ms = MAX_TTL_MS;
    else if (left_ms > 0)
        ttl_ms = (uint32_t)left_ms;
    return lease_deadline(
        r->terms.ballots[server].sent_at, ttl_ms, r->terms.drift_ppm);
}

static void record_yes(
    struct round *r, unsigned server, const struct outcome *outcome)
{
    r->terms.ballots[server].part = PART_YES;
    r->terms.ballots[server].why = FAULT_NONE;
    r->terms.ballots[server].has_answered = true;
    r->terms.ballots[server].until = mine_until(r, server, outcome->left_ms);
}

static void record_no(struct round *r, unsigned server)
{
    r->terms.ballots[server].has_answered = true;
    /* That may be what the first try has done. */
    if (traits_of(r)->may_end && r->terms.ballots[server].was_unsure) {
        r->terms.ballots[server].part = PART_UNSURE;
        return;
    }
    r->terms.ballots[server].part = PART_NO;
    r->terms.ballots[server].why = FAULT_NONE;
}

static void record_round_fault(struct round *r, unsigned server,
    enum fault fault, bool unsure, uint64_t now)
{
    r->terms.ballots[server].why = fault;
    r->terms.ballots[server].was_unsure =
        r->terms.ballots[server].was_unsure || unsure;
    if (unsure && fault == FAULT_UNREACHABLE &&
        r->terms.ballots[server].tries < MAX_TRIES) {
        uint64_t at = deadline_after(now, backoff_next(&r->backoff));
        if (at < r->terms.end) {
            r->terms.ballots[server].part = PART_IDLE;
            r->terms.ballots[server].again_at = at;
            return;
        }
    }
    r->terms.ballots[server].part =
        r->terms.ballots[server].was_unsure && traits_of(r)->may_change
            ? PART_UNSURE
            : PART_FAULT;
}

void round_outcome(struct round *r, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (server >= r->terms.servers ||
        r->terms.ballots[server].part != PART_SENT)
        return;
    uint64_t *sent_at = &r->terms.ballots[server].sent_at;
    if (!guarded(GUARD_SEND_TIME))
        *sent_at = now;
    else if (outcome->sent_at != 0)
        *sent_at = *sent_at == 0 ? outcome->sent_at
                                 : earlier(*sent_at, outcome->sent_at);
    bool reads = traits_of(r)->reads;
    enum outcome_kind kind = outcome->kind;
    /* If the token is gone, another client may have held the lock since, even
     * if the token is there again. */
    if (traits_of(r)->is_unbroken && kind == OUTCOME_NOT_MINE &&
        !guarded(GUARD_CONTINUITY))
        kind = OUTCOME_MINE;
    if (kind == OUTCOME_FAULT && outcome->applied &&
        !guarded(GUARD_OLD_DEADLINE))
        kind = OUTCOME_MINE;
    bool seen = kind == OUTCOME_SEEN || kind == OUTCOME_RECORDED;
    if (kind == OUTCOME_MINE || (reads && seen))
        record_yes(r, server, outcome);
    else if (kind == OUTCOME_NOT_MINE || (reads && kind == OUTCOME_FREE))
        record_no(r, server);
    else if (kind == OUTCOME_FAULT)
        record_round_fault(r, server, outcome->fault, outcome->unsure, now);
    else /* not an answer to this verb: it may have been applied */
        record_round_fault(r, server, FAULT_NOT_REDIS, true, now);
    decide_round(r);
}

bool round_next(struct round *r, struct effect *effect)
{
    unsigned servers = r->terms.servers;
    unsigned *server = &effect->server;
    *server = 0;
    if (part_find(r->terms.ballots, servers, PART_TO_SEND, server)) {
        effect->kind = EFFECT_SEND;
        r->terms.ballots[*server].part = PART_SENT;
        r->terms.ballots[*server].tries++;
        return true;
    }
    if (part_find(r->terms.ballots, servers, PART_TO_UNDO, server)) {
        effect->kind = EFFECT_UNDO;
        r->terms.ballots[*server].part = r->terms.ballots[*server].next_part;
        return true;
    }
    if (part_find(r->terms.ballots, servers, PART_TO_ABANDON, server)) {
        effect->kind = EFFECT_ABANDON;
        r->terms.ballots[*server].part = r->terms.ballots[*server].next_part;
        return true;
    }
    if (r->phase == PHASE_ENDING)
        finish_round(r);
    effect->verdict = round_verdict(r);
    effect->fault = r->fault;
    effect->wake = round_wake(r);
    return false;
}

void round_withdrawn(struct round *r, unsigned server)
{
    if (server < r->terms.servers &&
        r->terms.ballots[server].part == PART_UNSURE &&
        !r->terms.ballots[server].was_unsure)
        r->terms.ballots[server].part = PART_FAULT;
}

void round_tick(struct round *r, uint64_t now)
{
    if (r->phase != PHASE_ROUND)
        return;
    if (now >= r->terms.end) {
        conclude_round(r, VERDICT_OPEN);
        return;
    }
    for (unsigned i = 0; i < r->terms.servers; i++) {
        if (now >= r->terms.ballots[i].again_at) {
            r->terms.ballots[i].part = PART_TO_SEND;
            r->terms.ballots[i].again_at = NEVER;
        }
    }
}

void round_cancel(struct round *r)
{
    if (r->phase == PHASE_ROUND)
        conclude_round(r, VERDICT_CANCELLED);
    else if (r->phase == PHASE_ENDING && r->decision == VERDICT_OPEN)
        r->decision = VERDICT_CANCELLED;
}

uint64_t round_wake(const struct round *r)
{
    if (r->phase != PHASE_ROUND)
        return NEVER;
    uint64_t wake = r->terms.end;
    for (unsigned i = 0; i < r->terms.servers; i++)
        wake = earlier(wake, r->terms.ballots[i].again_at);
    return wake;
}

enum verdict round_verdict(const struct round *r)
{
    return r->phase == PHASE_OVER ? r->decision : VERDICT_OPEN;
}
