/* SPDX-License-Identifier: MIT */
/*
 * What a program outside the line does: asks, sleeps, asks again; holds, and
 * deletes its key, or leaves it to its TTL.
 */
#include "sim/stranger.h"

#include "sim/server.h"
#include "sim/world.h"

static struct model_server *server_of(struct world *w)
{
    return &w->server[0];
}

/* What it relies on, as a client that counts with clocks which differ by one
 * percent. */
static uint64_t careful(uint32_t ttl_ms)
{
    uint64_t ttl = ms_to_ns(ttl_ms);
    return ttl - ttl / 100 - 2 * MS;
}

bool stranger_holds(const struct world *w, const struct stranger *g)
{
    return g->state == STRANGER_HOLDS && w->now < g->relies_until;
}

bool strangers_ask(
    const struct world *w, unsigned name, uint64_t since, uint64_t period_ns)
{
    for (unsigned i = 0; i < w->setting.strangers; i++) {
        const struct stranger *g = &w->stranger[i];
        uint64_t period = g->pause_ns + g->jitter_ns + 2 * w->setting.travel_ns;
        if (g->name == name && g->asks_since <= since && period <= period_ns)
            return true;
    }
    return false;
}

static void go_to(
    struct world *w, struct stranger *g, int state, uint64_t delay)
{
    g->state = (__typeof__(g->state))state;
    alarm_set(w, &g->alarm, w->now + delay);
}

static void rest(struct world *w, struct stranger *g, uint64_t delay)
{
    g->asks_since = NEVER;
    go_to(w, g, STRANGER_RESTS, 1 + delay);
}

/* Until then it would be granted what somebody may still rely on. */
static uint64_t trusted_at(const struct world *w, const struct model_server *s)
{
    return s->forgot_at ? s->forgot_at + ms_to_ns(w->setting.max_ttl_ms) * 2
                        : 0;
}

static void ask(struct world *w, struct stranger *g)
{
    const struct model_server *s = server_of(w);
    if (w->stopping) {
        g->state = STRANGER_OVER;
        return;
    }
    if (w->now < s->slow_until)
        g->asks_since = NEVER;
    if (w->now < trusted_at(w, s)) {
        rest(w, g, trusted_at(w, s) - w->now);
        return;
    }
    g->sent_at = w->now;
    go_to(w, g, STRANGER_ASKS, travel(w, s));
}

/* The request has arrived at the server. */
static void arrived(struct world *w, struct stranger *g)
{
    struct model_server *s = server_of(w);
    bool answers = !s->down && w->now >= s->stopped_until &&
                   w->now >= s->refusing_until && w->now >= s->slow_until &&
                   w->now >= trusted_at(w, s);
    g->granted = answers && server_set_outside(w, s, g->name, g->ttl_ms);
    if (g->granted)
        g->token = server_value(w, s, g->name);
    if (!answers)
        g->asks_since = NEVER;
    else if (g->asks_since == NEVER)
        g->asks_since = w->now;
    go_to(w, g, STRANGER_HEARS, travel(w, s));
}

static void heard(struct world *w, struct stranger *g)
{
    if (!g->granted) {
        go_to(w, g, STRANGER_RESTS,
            g->pause_ns + (g->jitter_ns ? roll(w, g->jitter_ns) : 0));
        return;
    }
    uint64_t hold = 1 + roll(w, chance(w, 80) ? 30 * MS : 300 * MS);
    g->asks_since = NEVER;
    g->relies_until = g->sent_at + careful(g->ttl_ms);
    note(w, "stranger %llu holds n%llu t%llu", NULL, g->index, g->name,
        g->token);
    w->sum.turns_outside++;
    go_to(w, g, STRANGER_HOLDS, hold);
    checker_stranger_holds(w, g);
}

static void let_go(struct world *w, struct stranger *g)
{
    if (w->now >= g->relies_until || chance(w, 5)) { /* its TTL does it */
        rest(w, g, roll(w, 1000 * MS));
        return;
    }
    go_to(w, g, STRANGER_RELEASES, travel(w, server_of(w)));
}

static void deleted(struct world *w, struct stranger *g)
{
    struct model_server *s = server_of(w);
    bool heard_it = !s->down && w->now >= s->stopped_until;
    if (heard_it && server_value(w, s, g->name) == g->token)
        server_key(w, s, g->name)->token = 0;
    rest(w, g, roll(w, 300 * MS));
}

static void rings(struct world *w, struct alarm *alarm)
{
    struct stranger *g = list_entry(alarm, struct stranger, alarm);
    switch (g->state) {
    case STRANGER_RESTS:
        ask(w, g);
        break;
    case STRANGER_ASKS:
        arrived(w, g);
        break;
    case STRANGER_HEARS:
        heard(w, g);
        break;
    case STRANGER_HOLDS:
        let_go(w, g);
        break;
    case STRANGER_RELEASES:
        deleted(w, g);
        break;
    case STRANGER_OVER:
        break;
    }
}

void strangers_start(struct world *w)
{
    /* A loop that asks often, one like redis-py's, and one like
     * node-redlock's. */
    static const struct {
        uint64_t pause_ns, jitter_ns;
    } loops[] = {{50 * MS, 0}, {100 * MS, 0}, {100 * MS, 200 * MS}};
    for (unsigned i = 0; i < w->setting.strangers; i++) {
        struct stranger *g = &w->stranger[i];
        unsigned loop = (unsigned)roll(w, 3);
        *g = (struct stranger){.index = i,
            .name = (unsigned)roll(w, w->setting.names),
            .pause_ns = loops[loop].pause_ns,
            .jitter_ns = loops[loop].jitter_ns,
            .ttl_ms = (uint32_t)roll_from(
                w, w->setting.min_ttl_ms, w->setting.max_ttl_ms)};
        alarm_init(w, &g->alarm, rings);
        rest(w, g, roll(w, 1000 * MS));
    }
}

void strangers_end(struct world *w)
{
    for (unsigned i = 0; i < w->setting.strangers; i++)
        alarm_end(w, &w->stranger[i].alarm);
}
