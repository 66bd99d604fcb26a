/* SPDX-License-Identifier: MIT */
/*
 * Extend, release, adopt, inspect; and fences. Keeps: a YES is a quorum that
 * said so, each of which bears the deadline; a NO is one that no quorum can
 * outvote; a release names each server that has not said its last word.
 */
#include "core/round.h"

#include "core/fence.h"
#include "fuzz/fuzz.h"
#include "fuzz/steps.h"

#define TRIES 3

struct game {
    struct steps *s;
    struct round r;
    struct ballot ballots[MAX_SERVERS];
    struct {
        bool out, yes, no;
        bool left;   /* an ask of the end was taken */
        bool clear;  /* its last word is known: yes or no, or never sent */
        bool unsure; /* an earlier try may have been applied */
        unsigned sent;
        uint64_t sent_at; /* the earliest; 0 */
        uint64_t until;
    } at[MAX_SERVERS];
    unsigned long asks;
    bool cancelled;
};

static bool changes(const struct game *g)
{
    return g->r.terms.kind == ROUND_EXTEND || g->r.terms.kind == ROUND_RELEASE;
}

static void take(struct game *g, const struct effect *effect)
{
    unsigned i = effect->server;
    CHECK(i < g->r.terms.servers);
    CHECK(++g->asks <= (TRIES + 1UL) * g->r.terms.servers);
    CHECK(effect->kind != EFFECT_TOKEN);
    if (effect->kind == EFFECT_SEND) {
        CHECK(!g->at[i].out && !g->at[i].yes && !g->at[i].no);
        CHECK(!g->at[i].left && g->at[i].sent < TRIES);
        CHECK(g->r.decision == VERDICT_OPEN);
        g->at[i].out = true;
        g->at[i].sent++;
        return;
    }
    CHECK(!g->at[i].left);
    CHECK(effect->kind == EFFECT_UNDO ? g->r.terms.kind == ROUND_RELEASE
                                      : g->at[i].out);
    g->at[i].left = true;
    if (step_byte(g->s) & 1 && g->at[i].out) {
        g->at[i].out = false;
        round_withdrawn(&g->r, i);
    }
}

static void drain(struct game *g)
{
    struct effect effect;
    while (round_next(&g->r, &effect))
        take(g, &effect);
}

static void hear_yes(struct game *g, unsigned i, const struct outcome *o)
{
    const struct round_terms *terms = &g->r.terms;
    uint64_t ttl = terms->ttl_ms;
    if (terms->kind == ROUND_ADOPT && o->left_ms != LEFT_FOREVER)
        ttl = o->left_ms > 0 ? (uint64_t)o->left_ms : 0;
    g->at[i].yes = true;
    g->at[i].until = latest_deadline(g->at[i].sent_at, ttl, terms->drift_ppm);
}

static void hear(struct game *g)
{
    unsigned i;
    struct outcome o = step_outcome(g->s, &i);
    bool inspect = g->r.terms.kind == ROUND_INSPECT;
    if (i < g->r.terms.servers && g->ballots[i].part == PART_SENT) {
        CHECK(g->at[i].out);
        g->at[i].out = false;
        if (o.sent_at != 0)
            g->at[i].sent_at = g->at[i].sent_at == 0
                                   ? o.sent_at
                                   : earlier(g->at[i].sent_at, o.sent_at);
        bool seen = o.kind == OUTCOME_SEEN || o.kind == OUTCOME_RECORDED;
        if (o.kind == OUTCOME_MINE || (inspect && seen))
            hear_yes(g, i, &o);
        else if (o.kind == OUTCOME_NOT_MINE ||
                 (inspect && o.kind == OUTCOME_FREE))
            g->at[i].no = true;
        else
            g->at[i].unsure =
                g->at[i].unsure || o.kind != OUTCOME_FAULT || o.unsure;
    }
    round_outcome(&g->r, i, &o, g->s->now);
}

static void check_yes(const struct game *g, unsigned yes, unsigned no)
{
    unsigned quorum = quorum_of(g->r.terms.servers), bear = 0;
    if (g->r.terms.kind == ROUND_INSPECT) {
        CHECK(yes > 0 && no < quorum);
        return;
    }
    CHECK(yes >= quorum);
    for (unsigned i = 0; i < g->r.terms.servers; i++)
        bear += g->at[i].yes && g->r.deadline <= g->at[i].until;
    CHECK(g->r.terms.kind == ROUND_RELEASE || bear >= quorum);
}

static void check_over(const struct game *g)
{
    enum verdict verdict = round_verdict(&g->r);
    unsigned servers = g->r.terms.servers, quorum = quorum_of(servers);
    unsigned yes = 0, no = 0, sure_no = 0, maybe = 0;
    for (unsigned i = 0; i < servers; i++) {
        bool may = g->at[i].out || g->at[i].unsure;
        yes += g->at[i].yes;
        no += g->at[i].no;
        sure_no += g->at[i].no && !g->at[i].unsure;
        maybe += g->at[i].yes || (may && !g->at[i].no);
        if (g->r.terms.kind == ROUND_RELEASE)
            CHECK(g->at[i].yes || g->at[i].no || g->at[i].left);
    }
    CHECK(verdict > VERDICT_OPEN && verdict != VERDICT_EXPIRED);
    CHECK(round_wake(&g->r) == NEVER);
    if (verdict == VERDICT_YES)
        check_yes(g, yes, no);
    if (verdict == VERDICT_NO && g->r.terms.kind == ROUND_INSPECT)
        CHECK(no >= quorum);
    else if (verdict == VERDICT_NO && g->r.terms.kind == ROUND_RELEASE)
        CHECK(sure_no > servers - quorum);
    else if (verdict == VERDICT_NO)
        CHECK(no > servers - quorum);
    if (verdict == VERDICT_FAULT && changes(g))
        CHECK(maybe < quorum);
    CHECK(verdict != VERDICT_FAULT || g->r.fault != FAULT_NONE);
    CHECK(verdict != VERDICT_CANCELLED || g->cancelled);
}

static void step(struct game *g)
{
    struct effect effect;
    switch (step_byte(g->s) % 8) {
    case 0:
        if (round_next(&g->r, &effect))
            take(g, &effect);
        break;
    case 1:
        drain(g);
        break;
    case 2:
        step_pass(g->s, step_span(g->s));
        round_tick(&g->r, g->s->now);
        break;
    case 3:
        if (round_wake(&g->r) != NEVER)
            step_pass(g->s, deadline_left(round_wake(&g->r), g->s->now));
        round_tick(&g->r, g->s->now);
        break;
    case 4:
        if (step_byte(g->s) > 250) {
            g->cancelled = true;
            round_cancel(&g->r);
        }
        break;
    default:
        hear(g);
        break;
    }
}

bool play_round(struct steps *s)
{
    struct game g = {.s = s};
    struct round_terms terms = {
        .kind = (enum round_kind)(step_byte(s) % (ROUND_INSPECT + 1)),
        .servers = step_servers(s),
        .ballots = g.ballots,
        .ttl_ms = step_ttl_ms(s),
        .drift_ppm = step_byte(s) * 1960U + 1,
        .end = step_time(s),
    };
    enum verdict verdict = VERDICT_OPEN;

    backoff_init(&g.r.backoff, 1 + step_byte(s), 1000, 1);
    round_start(&g.r, &terms, s->now);
    while (s->left > 0) {
        step(&g);
        CHECK(verdict == VERDICT_OPEN || verdict == round_verdict(&g.r));
        verdict = round_verdict(&g.r);
        if (verdict != VERDICT_OPEN)
            check_over(&g);
    }
    drain(&g);
    if (terms.end == NEVER) {
        g.cancelled = true;
        round_cancel(&g.r);
    } else {
        round_tick(&g.r, later(s->now, terms.end));
    }
    drain(&g);
    check_over(&g);
    return g.r.decision == VERDICT_YES;
}

/* ------------------------------------------------------------------- fence */

struct raising {
    struct steps *s;
    struct fence f;
    struct ballot ballots[MAX_SERVERS];
    bool out[MAX_SERVERS], has[MAX_SERVERS], gone[MAX_SERVERS];
    unsigned long asks;
};

static void raise_asks(struct raising *g, unsigned most)
{
    struct effect effect;
    while (most-- > 0 && fence_next(&g->f, &effect)) {
        CHECK(effect.server < g->f.terms.servers);
        CHECK(++g->asks <= 2UL * g->f.terms.servers);
        CHECK(effect.kind == EFFECT_SEND
                  ? !g->out[effect.server] && !g->has[effect.server]
                  : effect.kind == EFFECT_ABANDON && g->out[effect.server]);
        g->out[effect.server] = effect.kind == EFFECT_SEND;
    }
}

static void raised(struct raising *g)
{
    unsigned i;
    struct outcome o = step_outcome(g->s, &i);
    uint64_t number = step_byte(g->s) & 1 ? g->f.value : step_span(g->s);
    if (i < g->f.terms.servers && g->ballots[i].part == PART_SENT) {
        CHECK(g->out[i]);
        g->out[i] = false;
        /* The first number drawn is the fence, where there is none. */
        g->has[i] = o.kind == OUTCOME_MINE && number != 0 &&
                    (number == g->f.value || g->f.value == 0);
        g->gone[i] = o.kind == OUTCOME_NOT_MINE;
    }
    o.fence = number;
    fence_outcome(&g->f, i, &o);
}

static void check_fence(const struct raising *g, bool cancelled)
{
    enum verdict verdict = fence_verdict(&g->f);
    unsigned has = 0, gone = 0, quorum = quorum_of(g->f.terms.servers);
    for (unsigned i = 0; i < g->f.terms.servers; i++) {
        has += g->has[i];
        gone += g->gone[i];
        CHECK(g->f.value >= g->ballots[i].fence);
    }
    CHECK(verdict != VERDICT_YES || (has >= quorum && g->f.value != 0));
    CHECK(verdict != VERDICT_NO || gone > g->f.terms.servers - quorum);
    CHECK(verdict != VERDICT_CANCELLED || cancelled);
    CHECK(verdict == VERDICT_OPEN || fence_wake(&g->f) == NEVER);
}

bool play_fence(struct steps *s)
{
    struct raising g = {.s = s};
    struct fence_terms terms = {
        .servers = step_servers(s), .ballots = g.ballots};
    bool cancelled = false;

    for (unsigned i = 0; i < terms.servers; i++)
        g.ballots[i].fence = step_span(s);
    terms.end = step_time(s);
    fence_start(&g.f, &terms);
    for (unsigned i = 0; i < terms.servers; i++)
        g.has[i] = g.ballots[i].fence != 0 && g.ballots[i].fence == g.f.value;
    while (s->left > 0) {
        enum verdict before = fence_verdict(&g.f);
        unsigned what = step_byte(s) % 6;
        if (what < 2) {
            raise_asks(&g, what ? MAX_SERVERS : 1);
        } else if (what == 2) {
            step_pass(s, step_span(s));
            fence_tick(&g.f, s->now);
        } else if (what == 3 && step_byte(s) > 250) {
            cancelled = true;
            fence_cancel(&g.f);
        } else {
            raised(&g);
        }
        CHECK(before == VERDICT_OPEN || before == fence_verdict(&g.f));
        check_fence(&g, cancelled);
    }
    raise_asks(&g, 2 * MAX_SERVERS);
    if (fence_verdict(&g.f) == VERDICT_OPEN)
        fence_tick(&g.f, later(s->now, terms.end));
    raise_asks(&g, 2 * MAX_SERVERS);
    CHECK(fence_verdict(&g.f) != VERDICT_OPEN);
    check_fence(&g, cancelled);
    return g.f.decision == VERDICT_YES;
}
