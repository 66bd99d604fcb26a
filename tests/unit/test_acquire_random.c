/* SPDX-License-Identifier: MIT */
/*
 * Acquire against model servers: three clients compete for one name on 1 ... 5
 * servers that are slow, refuse, apply and do not answer, or never see what
 * was sent. The model knows the truth, so after each step it can be said what
 * no client can know: that nobody believes in a lock while another does, and
 * that nothing is left behind. NXLOCK_SEED replays one history.
 */
#include "support/test.h"

#include "core/acquire.h"
#include "unit/core_rig.h"

#define HISTORIES 100000
#define CLIENTS 3
#define SERVERS_MAX 5
#define EVENTS_MAX 512
#define SLOW (150 * MS)

enum event_kind {
    EVENT_START,
    EVENT_CANCEL,
    EVENT_RELEASE,
    EVENT_SET,
    EVENT_DELETE,
    EVENT_REPLY
};

struct event {
    enum event_kind kind;
    uint64_t at;
    unsigned client, server, round;
    uint64_t token;
    uint64_t sent_at;
    bool mute; /* SET: what comes of it is not told */
    struct outcome outcome;
};

struct key {
    uint64_t token; /* 0: free */
    uint64_t until;
};

/* What became of what was sent in the present round, as the model knows it. */
struct fate {
    bool sent, unsent, in_flight, applied;
    bool heard_no; /* it was told "busy" or a fault without a doubt */
    bool undone;
    uint64_t token;
};

struct client {
    struct acquire machine;
    struct ballot ballots[MAX_SERVERS];
    bool running, told_busy;
    unsigned round;
    uint64_t token;
    uint64_t held_until; /* 0: holds nothing */
    struct fate fate[SERVERS_MAX];
    uint64_t order[SERVERS_MAX]; /* nothing overtakes on a connection */
};

struct world {
    uint64_t seed, now, tokens;
    struct backoff dice;
    unsigned servers;
    uint32_t ttl_ms;
    uint64_t budget;
    struct key key[SERVERS_MAX];
    struct client client[CLIENTS];
    struct event event[EVENTS_MAX];
    unsigned events;
    unsigned *seen; /* how often each verdict was reached */
};

#define must(w, condition)                                                     \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("seed %llu at %llu: %s", (unsigned long long)(w)->seed,   \
                (unsigned long long)(w)->now, #condition);                     \
    } while (0)

static uint64_t roll(struct world *w, uint64_t limit)
{
    return backoff_random(&w->dice, limit);
}

static void put(struct world *w, struct event event)
{
    must(w, w->events < EVENTS_MAX);
    w->event[w->events++] = event;
}

/* Mostly quick, now and then longer than any budget. */
static uint64_t travel(struct world *w)
{
    return w->now + 1 + roll(w, roll(w, 8) == 0 ? SLOW : 3 * MS);
}

static bool stands(const struct world *w, unsigned server, uint64_t token)
{
    const struct key *key = &w->key[server];
    return token != 0 && key->token == token && w->now < key->until;
}

static void reply(struct world *w, struct event event, struct outcome outcome)
{
    event.kind = EVENT_REPLY;
    event.outcome = outcome;
    event.at = travel(w);
    put(w, event);
}

static void send_set(struct world *w, struct client *c, unsigned server)
{
    struct fate *fate = &c->fate[server];
    struct event event = {.kind = EVENT_SET,
        .client = (unsigned)(c - w->client),
        .server = server,
        .round = c->round,
        .token = c->token,
        .sent_at = w->now};
    /* Sent before with the same token? Only if that came to nothing. */
    must(w, fate->token != c->token || (w->servers == 1 && fate->heard_no &&
                                           !fate->in_flight && !fate->applied));
    *fate = (struct fate){.sent = true, .token = c->token};
    uint64_t luck = roll(w, 20);
    if (luck == 0) { /* it stays in our buffer */
        fate->unsent = true;
        return;
    }
    if (luck <= 2) {
        static const enum fault faults[] = {FAULT_UNREACHABLE, FAULT_RETRY,
            FAULT_FULL, FAULT_UNREACHABLE, FAULT_DENIED};
        reply(w, event, refused(faults[roll(w, 5)]));
        return;
    }
    event.mute = luck <= 5;
    if (luck <= 4) /* the connection breaks, perhaps before it arrives */
        reply(w, event, cut(w->now));
    if (luck == 3)
        return;
    fate->in_flight = true;
    event.at = c->order[server] = later(c->order[server] + 1, travel(w));
    put(w, event);
}

static void send_delete(
    struct world *w, struct client *c, unsigned server, uint64_t token)
{
    c->order[server] = later(c->order[server] + 1, travel(w));
    put(w, (struct event){.kind = EVENT_DELETE,
               .server = server,
               .token = token,
               .at = c->order[server]});
}

/* Once a round is over, all that may stand of it has been undone. */
static void check_undone(struct world *w, struct client *c)
{
    for (unsigned i = 0; i < w->servers; i++) {
        const struct fate *f = &c->fate[i];
        bool may_stand = f->sent && f->token == c->token && !f->heard_no;
        must(w, !may_stand || f->undone);
        must(w, !(f->in_flight || f->applied) || f->undone);
    }
}

static void claim(struct world *w, struct client *c)
{
    uint64_t deadline = c->machine.deadline;
    unsigned kept = 0;
    must(w, w->now < deadline);
    for (unsigned i = 0; i < w->servers; i++)
        kept += stands(w, i, c->token) && w->key[i].until >= deadline;
    must(w, kept >= quorum_of(w->servers));
    for (unsigned i = 0; i < CLIENTS; i++)
        must(w, w->client[i].held_until <= w->now);
    c->held_until = deadline;
    if (roll(w, 2) == 0) { /* else it crashes, so to speak */
        put(w, (struct event){.kind = EVENT_RELEASE,
                   .client = (unsigned)(c - w->client),
                   .token = c->token,
                   .at = w->now + roll(w, 2 * ms_to_ns(w->ttl_ms))});
    }
}

static void finish(struct world *w, struct client *c, enum verdict verdict)
{
    c->running = false;
    w->seen[verdict]++;
    must(w, acquire_wake(&c->machine) == NEVER);
    if (verdict == VERDICT_YES) {
        claim(w, c);
        return;
    }
    check_undone(w, c);
    must(w, verdict != VERDICT_NO || c->told_busy);
    if (verdict != VERDICT_FAULT)
        return;
    unsigned applied = 0;
    for (unsigned i = 0; i < w->servers; i++)
        applied += c->fate[i].in_flight || c->fate[i].applied;
    must(w, applied < quorum_of(w->servers));
}

static void undo(struct world *w, struct client *c, unsigned server)
{
    struct fate *fate = &c->fate[server];
    must(w, fate->sent && fate->token == c->token && !fate->undone);
    fate->undone = true;
    if (fate->unsent) {
        acquire_withdrawn(&c->machine, server);
        fate->heard_no = true;
    } else {
        send_delete(w, c, server, c->token);
    }
}

static void take_asks(struct world *w, struct client *c)
{
    struct effect effect;
    if (c->machine.rounds != c->round) {
        check_undone(w, c);
        c->round = c->machine.rounds;
    }
    while (acquire_next(&c->machine, &effect)) {
        must(w, acquire_verdict(&c->machine) == VERDICT_OPEN ||
                    effect.kind == EFFECT_ABANDON ||
                    effect.kind == EFFECT_UNDO);
        must(w, effect.server < w->servers);
        if (effect.kind == EFFECT_TOKEN)
            c->token = ++w->tokens;
        else if (effect.kind == EFFECT_SEND)
            send_set(w, c, effect.server);
        else if (effect.kind == EFFECT_UNDO)
            undo(w, c, effect.server);
    }
    uint64_t end = c->machine.terms.end;
    enum verdict verdict = acquire_verdict(&c->machine);
    if (verdict != VERDICT_OPEN) {
        finish(w, c, verdict);
    } else {
        must(w, end == NEVER || w->now < end);
        must(w, acquire_wake(&c->machine) <= end);
        must(w, acquire_wake(&c->machine) > w->now);
    }
}

static void begin_acquire(struct world *w, struct client *c)
{
    static const uint64_t waits[] = {0, 30 * MS, 200 * MS, 900 * MS, NEVER};
    uint64_t wait = waits[roll(w, 5)];
    uint64_t timeout = (20 + roll(w, 300)) * MS;
    struct acquire_terms terms = {.servers = w->servers,
        .ballots = c->ballots,
        .ttl_ms = w->ttl_ms,
        .drift_ppm = 10000,
        .answer_timeout_ns = w->budget,
        .wait_until = deadline_after(w->now, wait),
        .end = deadline_after(w->now, later(wait, timeout))};
    backoff_init(&c->machine.backoff, 4 * MS, 64 * MS, w->dice.seed);
    acquire_start(&c->machine, &terms, w->now);
    c->running = true;
    if (wait == NEVER || roll(w, 8) == 0)
        put(w, (struct event){.kind = EVENT_CANCEL,
                   .client = (unsigned)(c - w->client),
                   .at = w->now + roll(w, 2000 * MS)});
    take_asks(w, c);
}

static void apply_set(struct world *w, const struct event *e)
{
    struct key *key = &w->key[e->server];
    struct fate *fate = &w->client[e->client].fate[e->server];
    bool free = key->token == 0 || w->now >= key->until;
    int64_t left = (int64_t)(deadline_left(key->until, w->now) / MS);
    struct outcome outcome = busy(roll(w, 2) ? left : LEFT_UNKNOWN);
    if (free) { /* this server's clock is up to 1 % too fast */
        uint64_t ttl = ms_to_ns(w->ttl_ms);
        *key = (struct key){e->token, w->now + ttl - roll(w, ttl / 100 + 1)};
        outcome = granted(e->sent_at);
    }
    if (fate->token == e->token) {
        fate->in_flight = false;
        fate->applied = free;
    }
    if (!e->mute)
        reply(w, *e, outcome);
}

static void hear(struct world *w, struct client *c, const struct event *e)
{
    /* A client knows its slots: no answer to an older round gets here. */
    if (!c->running || e->round != c->round)
        return;
    enum outcome_kind kind = e->outcome.kind;
    struct fate *fate = &c->fate[e->server];
    c->told_busy = c->told_busy || kind == OUTCOME_BUSY;
    if (!fate->undone)
        fate->heard_no = kind == OUTCOME_BUSY ||
                         (kind == OUTCOME_FAULT && !e->outcome.unsure);
    acquire_outcome(&c->machine, e->server, &e->outcome, w->now);
    if (roll(w, 16) == 0) /* heard twice: once too often */
        acquire_outcome(&c->machine, e->server, &e->outcome, w->now);
    take_asks(w, c);
}

static void happen(struct world *w, const struct event *e)
{
    struct client *c = &w->client[e->client];
    switch (e->kind) {
    case EVENT_START:
        begin_acquire(w, c);
        break;
    case EVENT_CANCEL:
        if (c->running) {
            acquire_cancel(&c->machine);
            take_asks(w, c);
            must(w, !c->running);
        }
        break;
    case EVENT_RELEASE:
        c->held_until = 0;
        for (unsigned i = 0; i < w->servers; i++)
            send_delete(w, c, i, e->token);
        break;
    case EVENT_SET:
        apply_set(w, e);
        break;
    case EVENT_DELETE:
        if (stands(w, e->server, e->token))
            w->key[e->server].token = 0;
        break;
    case EVENT_REPLY:
        hear(w, c, e);
        break;
    }
}

/* The next event, or a client's timer if that is due first. */
static bool step(struct world *w)
{
    uint64_t at = NEVER;
    unsigned next = 0;
    struct client *due = NULL;
    for (unsigned i = 0; i < w->events; i++) {
        if (w->event[i].at < at) {
            at = w->event[i].at;
            next = i;
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *c = &w->client[i];
        if (c->running && acquire_wake(&c->machine) < at) {
            at = acquire_wake(&c->machine);
            due = c;
        }
    }
    if (at == NEVER)
        return false;
    must(w, at >= w->now);
    w->now = at;
    if (due) {
        acquire_tick(&due->machine, w->now);
        take_asks(w, due);
        return true;
    }
    struct event event = w->event[next];
    w->event[next] = w->event[--w->events];
    happen(w, &event);
    return true;
}

static void run_history(uint64_t seed, unsigned *seen)
{
    struct world w = {.seed = seed, .now = T0, .seen = seen};
    backoff_init(&w.dice, 1, 1, seed);
    w.servers = 1 + (unsigned)roll(&w, SERVERS_MAX);
    w.ttl_ms = 20 + (uint32_t)roll(&w, 400);
    w.budget = (5 + roll(&w, 60)) * MS;
    for (unsigned i = 0; i < CLIENTS; i++)
        put(&w, (struct event){.kind = EVENT_START,
                    .client = i,
                    .at = T0 + roll(&w, 40 * MS)});
    while (step(&w))
        ;
    for (unsigned i = 0; i < CLIENTS; i++)
        must(&w, !w.client[i].running);
    for (unsigned i = 0; i < w.servers; i++) {
        bool claimed = false; /* by one who did not release */
        for (unsigned j = 0; j < CLIENTS; j++)
            claimed = claimed || (w.client[j].held_until != 0 &&
                                     w.key[i].token == w.client[j].token);
        must(&w, claimed || !stands(&w, i, w.key[i].token));
    }
}

static void histories(void **state)
{
    (void)state;
    const char *one = getenv("NXLOCK_SEED");
    unsigned seen[VERDICT_CANCELLED + 1] = {0};
    if (one) {
        run_history(strtoull(one, NULL, 10), seen);
        return;
    }
    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        run_history(seed, seen);
    /* A model in which something never happens would prove nothing. */
    for (unsigned i = VERDICT_YES; i <= VERDICT_CANCELLED; i++)
        assert_true(i == VERDICT_RECORDED || seen[i] > HISTORIES / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(histories)};
    return cmocka_run_group_tests_name("acquire_random", tests, NULL, NULL);
}
