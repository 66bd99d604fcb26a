/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line. What became of the present token is kept a second time here,
 * by what was asked for it and what was said. Keeps: one request at a time; a
 * token is in one JOIN only, and is undone before another one takes its place
 * or the wait is lost; YES is an answer that grants, or a message over the
 * token's own connections, and a lease that runs, counted from before an
 * answered request; the end is kept, and asks are bounded.
 */
#include "core/line.h"

#include "core/lease.h"
#include "fuzz/fuzz.h"
#include "fuzz/steps.h"

#define REST_MAX (3 * NS_PER_S) /* a beat, or a delay after a fault */

/* What is known of a token. */
struct token {
    bool there, used; /* used: it was in a JOIN */
    bool stands;      /* it may be in line, or hold the lock */
    bool waits;       /* its JOIN was answered so */
    bool granted;     /* by an answer, or by a message that counts */
    bool told;        /* while its JOIN was not answered */
    bool moved;       /* it was answered over another connection */
    unsigned joined_on, subscription;
    uint64_t sent_at; /* what was answered last */
};

struct game {
    struct steps *s;
    struct line l;
    struct messages messages;
    struct token token;
    /* The present wait. */
    unsigned long asks, inputs;
    bool out, joins; /* a request is under way; JOIN */
    bool busy, late, cancelled;
    bool doubt;   /* the server may grant a token that was given up */
    bool useless; /* a lasting fault, or a key without an end, was seen */
};

/* -------------------------------------------------------------------- asks */

static void send_it(struct game *g)
{
    struct token *t = &g->token;
    CHECK(!g->out && t->there);
    g->out = true;
    g->joins = line_joins(&g->l);
    if (!g->joins) {
        CHECK(t->stands && t->waits);
        return;
    }
    CHECK(!t->used);
    t->used = t->stands = true;
    t->subscription =
        g->messages.number + (g->messages.state == MESSAGES_UP ? 0 : 1);
}

static void undo(struct game *g)
{
    CHECK(g->token.stands && g->l.decision != LINE_YES);
    g->token.stands = false;
    if (g->out && step_byte(g->s) & 1)
        line_withdrawn(&g->l);
    else
        g->doubt = g->doubt || (g->out && g->joins);
    g->out = false;
}

static void take(struct game *g, const struct effect *effect)
{
    CHECK(effect->server == 0);
    CHECK(++g->asks <= 4 * g->inputs);
    switch (effect->kind) {
    case EFFECT_TOKEN:
        CHECK(!g->out && !g->token.stands);
        g->token = (struct token){.there = true};
        break;
    case EFFECT_SEND:
        send_it(g);
        break;
    case EFFECT_UNDO:
        undo(g);
        break;
    case EFFECT_ABANDON:
        CHECK(g->out && !g->joins);
        g->out = false;
        break;
    }
}

static void check_waiting(const struct game *g)
{
    const struct line *l = &g->l;
    uint64_t wake = line_wake(l);
    CHECK(g->out == l->in_flight && g->token.stands == l->in_line);
    CHECK(wake == NEVER || wake <= l->terms.end);
    CHECK(g->out || wake <= deadline_after(l->now, REST_MAX));
    /* It would not be told, but passed over. */
    CHECK(!g->token.stands || !l->by_message ||
          g->messages.state != MESSAGES_NONE);
}

static void drain(struct game *g)
{
    struct effect effect;
    while (line_next(&g->l, &effect))
        take(g, &effect);
    if (line_verdict(&g->l) == LINE_OPEN)
        check_waiting(g);
}

/* ----------------------------------------------------------------- answers */

static void fails(struct game *g, enum fault fault, bool unsure)
{
    g->useless = g->useless || !fault_is_transient(fault);
    if (!g->joins)
        return;
    g->token.stands = unsure || g->token.told;
    g->doubt = g->doubt || unsure;
}

static void waits(struct game *g, const struct outcome *o)
{
    struct token *t = &g->token;
    if (g->joins)
        t->joined_on = o->connection;
    t->moved = t->moved || o->connection != t->joined_on;
    t->waits = true;
    t->granted = t->told;
    g->busy = true;
    g->doubt = false;
    g->useless = g->useless || o->left_ms == LEFT_FOREVER;
}

static void answered(struct game *g, const struct outcome *o)
{
    g->out = false;
    if (o->kind == OUTCOME_GRANTED || o->kind == OUTCOME_BUSY)
        g->token.sent_at = o->sent_at;
    if (o->kind == OUTCOME_GRANTED)
        g->token.granted = true;
    else if (o->kind == OUTCOME_BUSY)
        waits(g, o);
    else if (o->kind == OUTCOME_FAULT)
        fails(g, o->fault, o->unsure);
    else if (o->kind == OUTCOME_NOT_MINE && !g->joins)
        g->token.stands = false;
    else
        fails(g, FAULT_NOT_REDIS, true);
}

/* A token was granted the lock, however that came: it is taken if enough is
 * left of its lease, and only then. */
static void check_grant(struct game *g)
{
    const struct line_terms *terms = &g->l.terms;
    uint64_t beat = later(100, earlier(terms->ttl_ms / 10, 3000));
    uint64_t lease =
        earlier(terms->ttl_ms + beat, later(terms->max_ttl_ms, terms->ttl_ms));
    uint64_t latest =
        latest_deadline(g->token.sent_at, lease, terms->drift_ppm);
    bool runs = latest >= deadline_after_ms(g->l.now, LEASE_USABLE_MS);
    CHECK((g->l.decision == LINE_YES) == runs);
    if (runs)
        CHECK(g->l.deadline <= latest &&
              g->l.deadline >= deadline_after_ms(g->l.now, LEASE_USABLE_MS));
    g->late = g->late || !runs;
    g->token.granted = runs;
    /* After a message that came too late a STAY decides. */
    g->token.told = g->token.told && runs;
}

/* What the machine counts; it looks away where it asked nothing. */
static void hear(struct game *g)
{
    unsigned byte;
    struct outcome o = step_outcome(g->s, &byte);
    o.connection = byte & 3;
    o.ahead = byte & 4 ? 0 : byte >> 4;
    o.no_listener = byte & 8;
    bool counts = g->l.in_flight;
    CHECK(!counts || g->out);
    if (counts)
        answered(g, &o);
    line_outcome(&g->l, &o, g->s->now);
    if (counts && g->token.granted)
        check_grant(g);
}

static void tell(struct game *g)
{
    struct token *t = &g->token;
    unsigned connection = step_byte(g->s) & 3;
    /* Not one that is given up, though its undo is left to take. */
    bool counts = g->l.decision == LINE_OPEN && g->l.in_line;
    bool same = !t->moved && connection == t->joined_on &&
                g->messages.number == t->subscription;
    CHECK(!counts || t->stands);
    if (counts && t->waits)
        t->granted = same;
    else if (counts)
        t->told = true;
    line_on_granted(&g->l, connection, g->s->now);
    if (counts && t->granted)
        check_grant(g);
    else if (counts) /* then an answer decides */
        CHECK(g->l.in_flight || g->l.send_due);
}

static void change_messages(struct game *g)
{
    unsigned byte = step_byte(g->s);
    bool was_up = g->messages.state == MESSAGES_UP;
    g->messages.state = (__typeof__(g->messages.state))(byte % 3);
    g->messages.number +=
        g->messages.state == MESSAGES_UP && (!was_up || byte & 0x80);
    line_messages_changed(&g->l, g->s->now);
}

/* -------------------------------------------------------------------- ends */

static void check_over(const struct game *g)
{
    enum line_verdict verdict = line_verdict(&g->l);
    CHECK(verdict > LINE_OPEN && verdict <= LINE_UNUSABLE);
    CHECK(line_wake(&g->l) == NEVER);
    CHECK(!g->out);
    CHECK((verdict == LINE_YES) == g->token.stands);
    CHECK(verdict != LINE_YES || g->token.granted);
    CHECK(verdict != LINE_NO || (g->busy && !g->doubt));
    CHECK(verdict != LINE_EXPIRED || g->late);
    CHECK(verdict != LINE_DID_NOTHING || !g->doubt);
    CHECK(verdict != LINE_CANCELLED || g->cancelled);
    CHECK(verdict != LINE_UNUSABLE || g->useless);
}

static void cancel(struct game *g)
{
    g->cancelled = g->cancelled || g->l.decision == LINE_OPEN;
    line_cancel(&g->l);
}

/* At the time at which it wants to be woken it does something, or wants to be
 * woken later. */
static void wake(struct game *g)
{
    drain(g);
    if (line_wake(&g->l) == NEVER)
        return;
    step_pass(g->s, deadline_left(line_wake(&g->l), g->s->now));
    for (int i = 0; i < 3 && line_wake(&g->l) <= g->s->now; i++) {
        g->inputs++;
        line_tick(&g->l, g->s->now);
        drain(g);
    }
    CHECK(line_wake(&g->l) > g->s->now);
}

/* ------------------------------------------------------------------- steps */

/* A wait after another one was lost; by the token that it asked for the lock
 * itself with, or a fresh one. */
static void start(struct game *g, struct line_terms *terms)
{
    bool token = step_byte(g->s) & 1;
    terms->wait_until = later(step_time(g->s), g->s->now);
    terms->end = later(step_time(g->s), terms->wait_until);
    g->token = (struct token){.there = token};
    g->asks = 0;
    g->inputs = 1;
    g->busy = token;
    g->late = g->cancelled = g->doubt = g->useless = false;
    line_start(&g->l, terms, token, 1, g->s->now);
}

static void step(struct game *g)
{
    struct effect effect;
    g->inputs++;
    switch (step_byte(g->s) % 10) {
    case 0:
        if (line_next(&g->l, &effect))
            take(g, &effect);
        break;
    case 1:
        drain(g);
        break;
    case 2:
        step_pass(g->s, step_span(g->s));
        line_tick(&g->l, g->s->now);
        break;
    case 3:
        wake(g);
        break;
    case 4: /* once in a while, for an input would be over with it */
        if (step_byte(g->s) > 250)
            cancel(g);
        break;
    case 5: /* a clock that was read earlier */
        line_tick(&g->l, earlier(step_time(g->s), g->s->now));
        break;
    case 6:
        change_messages(g);
        break;
    case 7:
        tell(g);
        break;
    default:
        hear(g);
        break;
    }
}

static struct line_terms read_terms(struct steps *s)
{
    struct line_terms terms = {.ttl_ms = step_ttl_ms(s),
        .max_ttl_ms = step_ttl_ms(s),
        .drift_ppm = step_byte(s) * 1960U + 1,
        .timeout_ns = NS_PER_S,
        .answer_timeout_ns = 1 + step_span(s)};
    return terms;
}

/* However it stands now, it is over with the end of the call, or when it is
 * cancelled where there is none. */
static void finish(struct game *g)
{
    g->inputs++;
    drain(g);
    if (g->l.terms.end == NEVER) {
        cancel(g);
    } else {
        g->s->now = later(g->s->now, g->l.terms.end);
        line_tick(&g->l, g->s->now);
    }
    drain(g);
    check_over(g);
}

bool play_line(struct steps *s)
{
    struct game g = {.s = s};
    struct line_terms terms = read_terms(s);
    bool granted = false;

    terms.messages = &g.messages;
    change_messages(&g);
    start(&g, &terms);
    while (s->left > 0) {
        enum line_verdict before = line_verdict(&g.l);
        step(&g);
        enum line_verdict verdict = line_verdict(&g.l);
        /* What is over stays so, whatever comes. */
        CHECK(before == LINE_OPEN || before == verdict);
        if (verdict == LINE_OPEN)
            continue;
        check_over(&g);
        granted = granted || verdict == LINE_YES;
        if (step_byte(s) & 1)
            start(&g, &terms);
    }
    finish(&g);
    return granted || g.l.decision == LINE_YES;
}
