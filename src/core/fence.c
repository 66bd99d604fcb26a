/* SPDX-License-Identifier: MIT */
/*
 * Raises the servers that granted a lock to its fencing token.
 *
 * Invariant: a server counts once, and only with exactly this number. Servers
 * that drew it themselves are not asked, so a single server, or equal counters,
 * cost nothing.
 */
#include "core/fence.h"

#include "base/deadline.h"
#include "model/guard.h"

static void conclude_fence(struct fence *f, enum verdict verdict)
{
    f->decision = verdict;
    for (unsigned i = 0; i < f->terms.servers; i++) {
        if (f->terms.ballots[i].part == PART_TO_SEND)
            f->terms.ballots[i].part = PART_IDLE;
        else if (f->terms.ballots[i].part == PART_SENT)
            f->terms.ballots[i].part = PART_TO_ABANDON;
    }
    f->phase = parts_pending(f->terms.ballots, f->terms.servers) ? PHASE_ENDING
                                                                 : PHASE_OVER;
}

static void decide_fence(struct fence *f)
{
    struct tally t = tally_of(f->terms.ballots, f->terms.servers);
    if (t.yes >= t.quorum)
        conclude_fence(f, VERDICT_YES);
    else if (t.no > t.servers - t.quorum)
        conclude_fence(f, VERDICT_NO);
    else if (t.yes + t.open < t.quorum)
        conclude_fence(f, VERDICT_UNKNOWN);
}

void fence_start(struct fence *f, const struct fence_terms *terms)
{
    *f = (struct fence){.terms = *terms};
    for (unsigned i = 0; i < terms->servers; i++)
        if (terms->ballots[i].fence > f->value)
            f->value = terms->ballots[i].fence;
    /* Ask all others: one that has not answered the acquire may have granted it
     * since. */
    for (unsigned i = 0; i < terms->servers; i++) {
        bool has =
            terms->ballots[i].fence != 0 && terms->ballots[i].fence == f->value;
        f->terms.ballots[i].part = has ? PART_YES : PART_TO_SEND;
    }
    if (guarded(GUARD_WRITE_BACK))
        decide_fence(f);
    else
        conclude_fence(f, VERDICT_YES);
}

void fence_outcome(
    struct fence *f, unsigned server, const struct outcome *outcome)
{
    if (server >= f->terms.servers ||
        f->terms.ballots[server].part != PART_SENT)
        return;
    if (outcome->kind == OUTCOME_MINE) {
        if (f->value == 0)
            f->value = outcome->fence;
        f->terms.ballots[server].part =
            outcome->fence != 0 && outcome->fence == f->value ? PART_YES
                                                              : PART_FAULT;
    } else if (outcome->kind == OUTCOME_NOT_MINE) {
        f->terms.ballots[server].part = PART_NO;
    } else {
        enum fault fault =
            outcome->kind == OUTCOME_FAULT ? outcome->fault : FAULT_NOT_REDIS;
        f->terms.ballots[server].part = PART_FAULT;
        f->fault = fault_worse(f->fault, fault);
        if (!fault_is_transient(fault))
            f->permanent++;
    }
    decide_fence(f);
}

bool fence_next(struct fence *f, struct effect *effect)
{
    unsigned *server = &effect->server;
    *server = 0;
    if (part_find(f->terms.ballots, f->terms.servers, PART_TO_SEND, server)) {
        effect->kind = EFFECT_SEND;
        f->terms.ballots[*server].part = PART_SENT;
        return true;
    }
    if (part_find(
            f->terms.ballots, f->terms.servers, PART_TO_ABANDON, server)) {
        effect->kind = EFFECT_ABANDON;
        f->terms.ballots[*server].part = PART_IDLE;
        return true;
    }
    if (f->phase == PHASE_ENDING)
        f->phase = PHASE_OVER;
    effect->verdict = fence_verdict(f);
    effect->fault = f->fault;
    effect->wake = fence_wake(f);
    return false;
}

void fence_tick(struct fence *f, uint64_t now)
{
    if (f->phase != PHASE_ROUND || now < f->terms.end)
        return;
    f->fault = fault_worse(f->fault, FAULT_TIMEOUT);
    f->unanswered = tally_of(f->terms.ballots, f->terms.servers).open;
    conclude_fence(f, VERDICT_UNKNOWN);
}

void fence_cancel(struct fence *f)
{
    if (f->phase == PHASE_ROUND)
        conclude_fence(f, VERDICT_CANCELLED);
}

uint64_t fence_wake(const struct fence *f)
{
    return f->phase == PHASE_ROUND ? f->terms.end : NEVER;
}

enum verdict fence_verdict(const struct fence *f)
{
    return f->phase == PHASE_OVER ? f->decision : VERDICT_OPEN;
}
