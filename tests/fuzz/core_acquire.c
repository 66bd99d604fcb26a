/* SPDX-License-Identifier: MIT */
/*
 * Acquire. What is known of each server is kept a second time here, by what was
 * asked of it and what it said. Keeps: a token goes to a server once, unless
 * nothing came of it; YES is a quorum of grants and a lease that runs; what may
 * stand after a lost round was undone; the end is kept, and asks are bounded.
 */
#include "core/acquire.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/steps.h"

/* A server in the present round. */
enum state {
    UNASKED,
    OUT, /* no answer yet */
    GAVE,
    CLEAN, /* it has not got the token, for certain */
    UNCLEAR
};

struct game {
    struct steps *s;
    struct acquire a;
    struct ballot ballots[MAX_SERVERS];
    enum state state[MAX_SERVERS];
    uint64_t sent_at[MAX_SERVERS]; /* GAVE */
    bool undone[MAX_SERVERS];
    unsigned token, rounds;
    unsigned tainted[MAX_SERVERS]; /* the token that it may have got; 0 */
    unsigned long asks;
    bool busy, cancelled;
    bool again; /* the grant was given back, and it goes on */
};

static unsigned count(const struct game *g, enum state state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < g->a.terms.servers; i++)
        count += g->state[i] == state;
    return count;
}

/* Nothing may stay of a round that is over and was not won. */
static void check_undone(const struct game *g)
{
    for (unsigned i = 0; i < g->a.terms.servers; i++)
        CHECK(g->state[i] == UNASKED || g->state[i] == CLEAN || g->undone[i]);
}

static void see_round(struct game *g)
{
    if (g->a.rounds == g->rounds)
        return;
    CHECK(g->a.rounds == g->rounds + 1);
    check_undone(g);
    memset(g->state, 0, sizeof(g->state));
    memset(g->undone, 0, sizeof(g->undone));
    g->rounds = g->a.rounds;
}

static void take(struct game *g, const struct effect *effect)
{
    unsigned i = effect->server;
    CHECK(i < g->a.terms.servers);
    CHECK(++g->asks <= (unsigned long)g->rounds * (1 + 2 * g->a.terms.servers));
    switch (effect->kind) {
    case EFFECT_TOKEN:
        g->token++;
        break;
    case EFFECT_SEND:
        CHECK(g->token > 0 && g->state[i] == UNASKED);
        CHECK(g->tainted[i] != g->token);
        g->tainted[i] = g->token;
        g->state[i] = OUT;
        break;
    case EFFECT_UNDO:
        CHECK(!g->undone[i] && g->state[i] != UNASKED && g->state[i] != CLEAN);
        g->undone[i] = true;
        if (g->state[i] == OUT && step_byte(g->s) & 1) {
            acquire_withdrawn(&g->a, i);
            g->tainted[i] = 0;
            g->state[i] = CLEAN;
        }
        break;
    case EFFECT_ABANDON:
        CHECK(g->state[i] == OUT && g->a.decision == VERDICT_YES);
        break;
    }
}

static void drain(struct game *g)
{
    struct effect effect;
    while (acquire_next(&g->a, &effect))
        take(g, &effect);
}

/* What the machine counts; it looks away where it asked nothing. */
static void hear(struct game *g)
{
    unsigned i;
    struct outcome o = step_outcome(g->s, &i);
    bool counts = i < g->a.terms.servers && g->ballots[i].part == PART_SENT;
    if (counts) {
        CHECK(g->state[i] == OUT);
        bool busy = o.kind == OUTCOME_BUSY;
        bool clean = busy || o.kind == OUTCOME_RECORDED ||
                     (o.kind == OUTCOME_FAULT && !o.unsure);
        g->state[i] = clean                       ? CLEAN
                      : o.kind == OUTCOME_GRANTED ? GAVE
                                                  : UNCLEAR;
        if (clean && !o.unsure) /* busy and unsure: it was written */
            g->tainted[i] = 0;
        g->sent_at[i] = o.sent_at;
        g->busy = g->busy || busy;
    }
    acquire_outcome(&g->a, i, &o, g->s->now);
    if (counts && g->a.decision == VERDICT_YES)
        CHECK(g->a.now < g->a.deadline);
}

static void check_yes(const struct game *g)
{
    const struct acquire_terms *terms = &g->a.terms;
    unsigned bear = 0;
    for (unsigned i = 0; i < terms->servers; i++)
        bear += g->state[i] == GAVE &&
                g->a.deadline <= latest_deadline(g->sent_at[i], terms->ttl_ms,
                                     terms->drift_ppm);
    CHECK(bear >= quorum_of(terms->servers));
}

static void check_over(struct game *g)
{
    enum verdict verdict = acquire_verdict(&g->a);
    unsigned quorum = quorum_of(g->a.terms.servers);
    unsigned may_stand = count(g, OUT) + count(g, GAVE) + count(g, UNCLEAR);
    CHECK(verdict > VERDICT_OPEN && verdict <= VERDICT_CANCELLED);
    CHECK(acquire_wake(&g->a) == NEVER);
    if (verdict == VERDICT_YES)
        check_yes(g);
    else
        check_undone(g);
    CHECK(verdict != VERDICT_NO || (g->busy && may_stand < quorum));
    CHECK(verdict != VERDICT_EXPIRED || count(g, GAVE) >= quorum);
    CHECK(verdict != VERDICT_FAULT || may_stand < quorum);
    CHECK(verdict != VERDICT_CANCELLED || g->cancelled);
}

/* It was granted, but without a fence that counts: its driver has undone it
 * wherever it was sent. */
static void give_back(struct game *g)
{
    unsigned byte = step_byte(g->s);
    struct fence fence = {.decision = byte & 1 ? VERDICT_NO : VERDICT_UNKNOWN,
        .fault = (enum fault)(byte % FAULT_CLASSES),
        .permanent =
            (unsigned char)(step_byte(g->s) % (g->a.terms.servers + 1)),
        .unanswered = step_byte(g->s) % (g->a.terms.servers + 1)};
    if (acquire_verdict(&g->a) != VERDICT_YES)
        return;
    if (byte > 240) {
        fence.decision = VERDICT_CANCELLED;
        g->cancelled = true;
    }
    for (unsigned i = 0; i < g->a.terms.servers; i++)
        g->undone[i] = true;
    acquire_again(&g->a, &fence, g->s->now);
    CHECK(g->a.deadline == 0);
    g->again = true;
}

static void step(struct game *g)
{
    struct effect effect;
    g->again = false;
    switch (step_byte(g->s) % 9) {
    case 0:
        if (acquire_next(&g->a, &effect))
            take(g, &effect);
        break;
    case 1:
        drain(g);
        break;
    case 2:
        step_pass(g->s, step_span(g->s));
        acquire_tick(&g->a, g->s->now);
        break;
    case 3:
        if (acquire_wake(&g->a) != NEVER)
            step_pass(g->s, deadline_left(acquire_wake(&g->a), g->s->now));
        acquire_tick(&g->a, g->s->now);
        break;
    case 4: /* once in a while, for an input would be over with it */
        if (step_byte(g->s) > 250) {
            g->cancelled = g->cancelled || g->a.decision == VERDICT_OPEN;
            acquire_cancel(&g->a);
        }
        break;
    case 5: /* a clock that was read earlier */
        acquire_tick(&g->a, earlier(step_time(g->s), g->s->now));
        break;
    case 6:
        give_back(g);
        break;
    default:
        hear(g);
        break;
    }
    see_round(g);
}

static struct acquire_terms read_terms(struct steps *s)
{
    struct acquire_terms terms = {.servers = step_servers(s),
        .ttl_ms = step_ttl_ms(s),
        .drift_ppm = step_byte(s) * 1960U + 1,
        .timeout_ns = NS_PER_S,
        .answer_timeout_ns = 1 + step_span(s)};
    terms.wait_until = later(step_time(s), s->now);
    terms.end = later(step_time(s), terms.wait_until);
    return terms;
}

/* However it stands now, it is over with the end of the call, or when it is
 * cancelled where there is none. */
static void finish(struct game *g)
{
    drain(g);
    see_round(g);
    if (g->a.terms.end == NEVER) {
        g->cancelled = g->cancelled || g->a.decision == VERDICT_OPEN;
        acquire_cancel(&g->a);
    } else {
        g->s->now = later(g->s->now, g->a.terms.end);
        acquire_tick(&g->a, g->s->now);
    }
    see_round(g);
    drain(g);
    CHECK(acquire_verdict(&g->a) != VERDICT_OPEN);
    check_over(g);
}

bool play_acquire(struct steps *s)
{
    struct game g = {.s = s};
    struct acquire_terms terms = read_terms(s);
    uint64_t first = 1 + step_span(s);

    terms.ballots = g.ballots;
    backoff_init(&g.a.backoff, first, later(first, step_span(s)), 1);
    acquire_start(&g.a, &terms, s->now);
    see_round(&g);
    while (s->left > 0) {
        enum verdict before = acquire_verdict(&g.a);
        step(&g);
        enum verdict verdict = acquire_verdict(&g.a);
        /* What is over stays so, whatever comes. */
        CHECK(before == VERDICT_OPEN || before == verdict || g.again);
        if (verdict != VERDICT_OPEN)
            check_over(&g);
        else
            CHECK(
                acquire_wake(&g.a) <= terms.end || acquire_wake(&g.a) == NEVER);
    }
    finish(&g);
    return g.a.decision == VERDICT_YES;
}
