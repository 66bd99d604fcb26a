/* SPDX-License-Identifier: MIT */
/* The vote on one call: forwards to the machine that is running, that of
 * acquire.h, line.h, fence.h or round.h. */
#include "core/vote.h"

#include "base/deadline.h"

void vote_acquire(struct vote *v, const struct acquire_terms *terms,
    bool fenced, bool begins, uint64_t retry_first_ns, uint64_t retry_most_ns,
    uint64_t seed, uint64_t now)
{
    v->kind = VOTE_ACQUIRE;
    v->fenced = fenced && !begins;
    v->begins = begins;
    v->fencing = false;
    v->lined_up = v->handed_over = false;
    v->line = NULL;
    backoff_init(&v->acquire.backoff, retry_first_ns, retry_most_ns, seed);
    acquire_start(&v->acquire, terms, now);
}

void vote_round(struct vote *v, const struct round_terms *terms, uint64_t seed,
    uint64_t now)
{
    v->kind = VOTE_ROUND;
    v->fenced = v->fencing = v->begins = false;
    v->line = NULL;
    round_init_backoff(&v->round, seed);
    round_start(&v->round, terms, now);
}

/* Of an acquire. */
static struct ballot *fence_ballots(const struct vote *v)
{
    return v->ballots + v->acquire.terms.servers;
}

/* No number has been drawn with the new token. */
static void forget_numbers(struct vote *v)
{
    for (unsigned i = 0; i < v->acquire.terms.servers; i++)
        fence_ballots(v)[i].number = 0;
}

void vote_line_up(struct vote *v, struct line *line,
    const struct line_terms *terms, uint64_t seed, uint64_t now)
{
    bool unused = acquire_line_up(&v->acquire);
    v->line = line;
    v->lined_up = true;
    forget_numbers(v);
    line_start(line, terms, unused, seed, now);
}

/* If the wait in line is over, the acquire goes on. */
static void leave_line(struct vote *v)
{
    static const enum verdict verdicts[] = {
        [LINE_NO] = VERDICT_NO,
        [LINE_LATE] = VERDICT_LATE,
        [LINE_UNKNOWN] = VERDICT_UNKNOWN,
        [LINE_FAULT] = VERDICT_FAULT,
        [LINE_CANCELLED] = VERDICT_CANCELLED,
    };
    struct line *line = v->line;
    enum line_verdict verdict = line_verdict(line);
    if (verdict == LINE_OPEN)
        return;
    v->line = NULL;
    v->handed_over = verdict == LINE_YES && line->has_waited;
    if (verdict == LINE_YES && v->begins)
        acquire_confirm(&v->acquire, line->deadline, line->now);
    else if (verdict == LINE_YES)
        acquire_granted(&v->acquire, line->sent_at, line->deadline, line->now);
    else if (verdict == LINE_POLL)
        acquire_poll(
            &v->acquire, line->fault, line->doubt, line->busy_until, line->now);
    else
        acquire_ended(&v->acquire, verdicts[verdict], line->fault,
            line->left_ms, line->now);
}

bool vote_next(struct vote *v, struct ask *ask)
{
    if (v->fencing)
        return fence_next(&v->fence, ask);
    if (v->kind == VOTE_ROUND)
        return round_next(&v->round, ask);
    if (v->line) {
        if (line_next(v->line, ask))
            return true;
        leave_line(v);
        if (v->line)
            return false;
    }
    if (!acquire_next(&v->acquire, ask))
        return false;
    if (ask->kind == ASK_TOKEN)
        forget_numbers(v);
    return true;
}

void vote_outcome(struct vote *v, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (v->kind == VOTE_ACQUIRE && !v->fencing && !v->line &&
        outcome->kind == OUTCOME_GRANTED && server < v->acquire.terms.servers)
        fence_ballots(v)[server].number = outcome->fence;
    if (v->fencing)
        fence_outcome(&v->fence, server, outcome, outcome->fence);
    else if (v->line)
        line_outcome(v->line, outcome, now);
    else if (v->kind == VOTE_ACQUIRE)
        acquire_outcome(&v->acquire, server, outcome, now);
    else
        round_outcome(&v->round, server, outcome, now);
}

void vote_withdrawn(struct vote *v, unsigned server)
{
    if (v->fencing)
        return; /* raising a counter needs no undoing */
    if (v->line)
        line_withdrawn(v->line);
    else if (v->kind == VOTE_ACQUIRE)
        acquire_withdrawn(&v->acquire, server);
    else
        round_withdrawn(&v->round, server);
}

void vote_tick(struct vote *v, uint64_t now)
{
    if (v->fencing)
        fence_tick(&v->fence, now);
    else if (v->line)
        line_tick(v->line, now);
    else if (v->kind == VOTE_ACQUIRE)
        acquire_tick(&v->acquire, now);
    else
        round_tick(&v->round, now);
}

void vote_cancel(struct vote *v)
{
    if (v->fencing)
        fence_cancel(&v->fence);
    else if (v->line)
        line_cancel(v->line);
    else if (v->kind == VOTE_ACQUIRE)
        acquire_cancel(&v->acquire);
    else
        round_cancel(&v->round);
}

uint64_t vote_wake(const struct vote *v)
{
    if (v->fencing)
        return fence_wake(&v->fence);
    if (v->line)
        return line_wake(v->line);
    return v->kind == VOTE_ACQUIRE ? acquire_wake(&v->acquire)
                                   : round_wake(&v->round);
}

enum verdict vote_verdict(const struct vote *v)
{
    if (v->fencing)
        return fence_verdict(&v->fence);
    return v->kind == VOTE_ACQUIRE ? acquire_verdict(&v->acquire)
                                   : round_verdict(&v->round);
}

uint64_t vote_fence(const struct vote *v)
{
    if (v->begins)
        return fence_ballots(v)[0].number;
    return v->fencing ? v->fence.number : 0;
}

enum fault vote_fault(const struct vote *v)
{
    if (v->fencing)
        return v->fence.fault;
    return v->kind == VOTE_ACQUIRE ? v->acquire.fault : v->round.fault;
}

static void begin_fencing(struct vote *v, uint64_t now)
{
    const struct acquire *a = &v->acquire;
    struct fence_terms terms = {
        .servers = a->terms.servers,
        .ballots = fence_ballots(v),
        .end = earlier(earlier(a->deadline, a->terms.end),
            deadline_after(now, a->terms.budget_ns)),
    };
    v->fencing = true;
    fence_start(&v->fence, &terms);
}

enum vote_step vote_step(struct vote *v, uint64_t now)
{
    enum verdict verdict = vote_verdict(v);
    if (verdict == VERDICT_OPEN)
        return VOTE_OPEN;
    if (v->fencing)
        return verdict == VERDICT_YES ? VOTE_OVER : VOTE_UNDO;
    if (!v->fenced || verdict != VERDICT_YES)
        return VOTE_OVER;
    begin_fencing(v, now);
    return VOTE_GOES_ON;
}

void vote_again(struct vote *v, uint64_t now)
{
    v->fencing = false;
    acquire_again(&v->acquire, &v->fence, now);
}
