/* SPDX-License-Identifier: MIT */
/*
 * The vote on one call: forwards to the machine that is running, that of
 * acquire.h, line.h, fence.h or round.h, and works off the conditions of a
 * grant.
 *
 * Invariant: with a new token, no condition is met yet.
 */
#include "core/vote.h"

#include "base/deadline.h"

void vote_acquire(struct vote *v, const struct acquire_terms *terms,
    unsigned wanted, uint64_t retry_first_ns, uint64_t retry_max_ns,
    uint64_t seed, uint64_t now)
{
    v->machine = VOTE_ACQUIRE;
    v->condition = CONDITION_NONE;
    v->wanted = (unsigned char)wanted;
    v->by_line = v->lined_up = v->handed_over = v->raising_fence = false;
    v->line = NULL;
    backoff_init(&v->acquire.backoff, retry_first_ns, retry_max_ns, seed);
    acquire_start(&v->acquire, terms, now);
}

void vote_round(struct vote *v, const struct round_terms *terms, uint64_t seed,
    uint64_t now)
{
    v->machine = VOTE_ROUND;
    v->condition = CONDITION_NONE;
    v->wanted = 0;
    v->raising_fence = false;
    v->line = NULL;
    backoff_init(&v->round.backoff, ROUND_AGAIN_FIRST, ROUND_AGAIN_MAX, seed);
    round_start(&v->round, terms, now);
}

/* Of an acquire. */
static struct ballot *fence_ballots(const struct vote *v)
{
    return v->ballots + v->acquire.terms.servers;
}

/* There is a new token: no line has granted it the lock, and no number has been
 * drawn with it. */
static void forget_conditions(struct vote *v)
{
    v->condition = CONDITION_NONE;
    v->by_line = v->handed_over = false;
    for (unsigned i = 0; i < v->acquire.terms.servers; i++)
        fence_ballots(v)[i].fence = 0;
}

/* -------------------------------------------------------------- conditions */

/* ACQUIRE and BEGIN do by themselves what JOIN and STAY know nothing of. */
static bool granted_in_line(const struct vote *v)
{
    return v->by_line;
}

static void ask_once_more(struct vote *v, uint64_t now)
{
    acquire_one_more_round(&v->acquire, now);
}

static void begin_complete(const struct vote *v, struct verb *verb)
{
    verb->may_hold_token = vote_token_is_held(v);
}

static bool fence_applies(const struct vote *v)
{
    (void)v;
    return true;
}

static void fence_begin(struct vote *v, uint64_t now)
{
    const struct acquire *a = &v->acquire;
    struct fence_terms terms = {
        .servers = a->terms.servers,
        .ballots = fence_ballots(v),
        .end = earlier(earlier(a->deadline, a->terms.end),
            deadline_after(now, a->terms.answer_timeout_ns)),
    };
    v->machine = VOTE_FENCE;
    v->raising_fence = true;
    fence_start(&v->fence, &terms);
}

static void fence_complete(const struct vote *v, struct verb *verb)
{
    verb->fence = v->fence.value;
}

static void fence_again(struct vote *v, uint64_t now)
{
    acquire_again(&v->acquire, &v->fence, now);
}

/* It extends the lease that the line has granted. */
static void copies_complete(const struct vote *v, struct verb *verb)
{
    verb->may_hold_token = vote_token_is_held(v);
}

static const struct condition {
    bool (*applies)(const struct vote *v); /* to this grant, if it is wanted */
    void (*start)(struct vote *v, uint64_t now);
    enum verb_kind verb;
    void (*complete)(const struct vote *v, struct verb *verb);
    /* It is not met, and the grant was undone: plans another round, or ends.
     * NULL: it is a round of the acquire, which does all that by itself. */
    void (*again)(struct vote *v, uint64_t now);
} conditions[CONDITIONS] = {
    [CONDITION_BEGIN] = {.applies = granted_in_line,
        .start = ask_once_more,
        .verb = VERB_BEGIN,
        .complete = begin_complete},
    [CONDITION_FENCE] = {.applies = fence_applies,
        .start = fence_begin,
        .verb = VERB_RAISE,
        .complete = fence_complete,
        .again = fence_again},
    [CONDITION_COPIES] = {.applies = granted_in_line,
        .start = ask_once_more,
        .verb = VERB_EXTEND,
        .complete = copies_complete},
};

/* The next condition of the grant; false: there is none. */
static bool next_condition(struct vote *v, uint64_t now)
{
    unsigned wanted = v->wanted, first = v->condition;
    for (unsigned i = first + 1; wanted >> i; i++) {
        if (!(wanted >> i & 1U) || !conditions[i].applies(v))
            continue;
        v->condition = (enum vote_condition)i;
        conditions[i].start(v, now);
        return true;
    }
    return false;
}

enum vote_step vote_step(struct vote *v, enum verdict verdict, uint64_t now)
{
    if (verdict == VERDICT_YES)
        return next_condition(v, now) ? VOTE_GOES_ON : VOTE_OVER;
    return conditions[v->condition].again ? VOTE_UNDO : VOTE_OVER;
}

void vote_again(struct vote *v, uint64_t now)
{
    void (*again)(struct vote *, uint64_t) = conditions[v->condition].again;
    v->machine = VOTE_ACQUIRE;
    v->condition = CONDITION_NONE;
    v->raising_fence = false;
    again(v, now);
}

void vote_complete(const struct vote *v, struct verb *verb)
{
    verb->kind = conditions[v->condition].verb;
    conditions[v->condition].complete(v, verb);
}

/* ------------------------------------------------------------------ in line */

void vote_line_up(struct vote *v, struct line *line,
    const struct line_terms *terms, uint64_t seed, uint64_t now)
{
    bool unused = acquire_line_up(&v->acquire);
    v->machine = VOTE_LINE;
    v->line = line;
    v->lined_up = true;
    forget_conditions(v);
    line_start(line, terms, unused, seed, now);
}

/* If the wait in line is over, the acquire goes on. */
static void end_line_wait(struct vote *v)
{
    static const enum verdict verdicts[] = {
        [LINE_NO] = VERDICT_NO,
        [LINE_EXPIRED] = VERDICT_EXPIRED,
        [LINE_MAY_GRANT] = VERDICT_UNKNOWN,
        [LINE_DID_NOTHING] = VERDICT_FAULT,
        [LINE_CANCELLED] = VERDICT_CANCELLED,
    };
    struct line *line = v->line;
    enum line_verdict verdict = line_verdict(line);
    if (verdict == LINE_OPEN)
        return;
    v->machine = VOTE_ACQUIRE;
    v->line = NULL;
    v->by_line = verdict == LINE_YES;
    v->handed_over = v->by_line && line->has_waited;
    if (verdict == LINE_YES)
        acquire_granted(&v->acquire, line->sent_at, line->deadline, line->now);
    else if (verdict == LINE_UNUSABLE)
        acquire_leave_line(&v->acquire, line->fault, line->late_grant_possible,
            line->busy_until, line->now);
    else
        acquire_ended(&v->acquire, verdicts[verdict], line->fault,
            line->left_ms, line->now);
}

/* -------------------------------------------------------------- the machine */

static bool acquire_effect(struct vote *v, struct effect *effect)
{
    if (acquire_next(&v->acquire, effect)) {
        if (effect->kind == EFFECT_TOKEN)
            forget_conditions(v);
        return true;
    }
    effect->fence = fence_ballots(v)[0].fence; /* as BEGIN has drawn it */
    return false;
}

static bool fence_effect(struct vote *v, struct effect *effect)
{
    if (fence_next(&v->fence, effect))
        return true;
    effect->fence = v->fence.value;
    return false;
}

static bool line_effect(struct vote *v, struct effect *effect)
{
    if (line_next(v->line, effect))
        return true;
    end_line_wait(v);
    if (!v->line)
        return acquire_effect(v, effect);
    effect->verdict = VERDICT_OPEN;
    effect->wake = line_wake(v->line);
    return false;
}

bool vote_next(struct vote *v, struct effect *effect)
{
    switch (v->machine) {
    case VOTE_ROUND:
        return round_next(&v->round, effect);
    case VOTE_FENCE:
        return fence_effect(v, effect);
    case VOTE_LINE:
        return line_effect(v, effect);
    case VOTE_ACQUIRE:
        break;
    }
    return acquire_effect(v, effect);
}

/* The answer to EXTEND, as that of an acquire: the token has the lock; or it
 * has lost it meanwhile, which does not say that another one has it. */
static const struct outcome *as_acquire_answer(
    const struct outcome *extended, struct outcome *other)
{
    *other = *extended;
    if (extended->kind == OUTCOME_MINE)
        other->kind = OUTCOME_GRANTED;
    other->left_ms = LEFT_UNKNOWN;
    return other;
}

void vote_outcome(struct vote *v, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct outcome other;
    switch (v->machine) {
    case VOTE_ACQUIRE:
        if (v->condition == CONDITION_COPIES)
            outcome = as_acquire_answer(outcome, &other);
        if (outcome->kind == OUTCOME_GRANTED &&
            server < v->acquire.terms.servers)
            fence_ballots(v)[server].fence = outcome->fence;
        acquire_outcome(&v->acquire, server, outcome, now);
        break;
    case VOTE_LINE:
        line_outcome(v->line, outcome, now);
        break;
    case VOTE_FENCE:
        fence_outcome(&v->fence, server, outcome);
        break;
    case VOTE_ROUND:
        round_outcome(&v->round, server, outcome, now);
        break;
    }
}

void vote_withdrawn(struct vote *v, unsigned server)
{
    switch (v->machine) {
    case VOTE_ACQUIRE:
        acquire_withdrawn(&v->acquire, server);
        break;
    case VOTE_LINE:
        line_withdrawn(v->line);
        break;
    case VOTE_FENCE:
        break; /* raising a counter needs no undoing */
    case VOTE_ROUND:
        round_withdrawn(&v->round, server);
        break;
    }
}

void vote_tick(struct vote *v, uint64_t now)
{
    switch (v->machine) {
    case VOTE_ACQUIRE:
        acquire_tick(&v->acquire, now);
        break;
    case VOTE_LINE:
        line_tick(v->line, now);
        break;
    case VOTE_FENCE:
        fence_tick(&v->fence, now);
        break;
    case VOTE_ROUND:
        round_tick(&v->round, now);
        break;
    }
}

void vote_cancel(struct vote *v)
{
    switch (v->machine) {
    case VOTE_ACQUIRE:
        acquire_cancel(&v->acquire);
        break;
    case VOTE_LINE:
        line_cancel(v->line);
        break;
    case VOTE_FENCE:
        fence_cancel(&v->fence);
        break;
    case VOTE_ROUND:
        round_cancel(&v->round);
        break;
    }
}
