/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a clock begins too late rather than too early. What is seen is seen
 * at looks a few milliseconds apart; the times of what matters in between, a
 * trouble, a connection, a grant, are known all the same.
 */
#include "sim/progress.h"

#include "sim/replication.h"
#include "sim/sentinels.h"
#include "sim/world.h"

#define LOOK_EVERY (10 * MS)
/* With readers: so long after a trouble it is over, and with it the leases of
 * those that it has struck; and so long somebody may wait then. */
#define TROUBLE_OVER (4000 * MS)
#define STARVES (6000 * MS)

void progress_start(struct world *w)
{
    w->progress = (struct progress){0};
}

void progress_granted(struct world *w, unsigned name)
{
    w->progress.granted_at[name] = w->now;
    w->progress.budget_ns[name] = 0;
}

void progress_granted_alone(struct world *w, unsigned name)
{
    w->progress.alone_at[name] = w->now;
    w->sum.alone += w->setting.readers;
}

static uint64_t bound_of(const struct world *w, unsigned name)
{
    const struct setting *s = &w->setting;
    uint64_t delay = s->in_line ? LINE_RETRY_MAX : RETRY_MAX;
    if (s->crowd) /* who is not the first asks every beat */
        delay = later(delay, ms_to_ns(s->max_ttl_ms) / 10);
    uint64_t turn = delay + 4 * s->travel_ns;
    if (s->failover) /* a sign of life may come first */
        turn += 2 * s->travel_ns;
    if (s->sentinels) /* and a look at Sentinels whose answers are slow */
        turn += 500 * MS;
    if (s->wait_replicas > 0) /* and WAITs, one behind the other */
        turn += 1000 * MS;
    if (w->options.servers == 1) /* a clock that is set back makes gaps */
        return 2 * turn + (s->far_back ? GAP_MOST_MS * MS : 0);
    turn += w->progress.budget_ns[name];
    unsigned workers = s->processes * s->workers;
    bool more = s->failover || s->readers;
    return (3 + (more ? workers : workers / 2)) * turn;
}

/* ------------------------------------------------ which servers are reached
 */

static void look_at_server(struct world *w, unsigned server)
{
    uint64_t *hung_until = &w->progress.hung_until[server];
    const struct model_server *s = &w->server[server];
    /* What came meanwhile stays unread until the end that was foreseen, even
     * where a later hang was to end sooner. */
    *hung_until = s->down ? 0 : later(*hung_until, s->stopped_until);
}

/* Since when it answers p at once; NEVER: it does not now. */
static uint64_t reached_since(
    const struct world *w, const struct process *p, unsigned server)
{
    const struct model_server *s = &w->server[server];
    const struct link *l = &p->link[server];
    if (l->state != LINK_UP || !l->conn->served || s->replica ||
        l->conn->server != s || !eligibility_votes(&l->eligibility, w->now))
        return NEVER;
    uint64_t since = later(l->up_since, l->eligibility.votes_at);
    since = later(since, w->progress.hung_until[server]);
    since = later(since, s->refusing_until);
    if (w->setting.wait_replicas > 0 && s->replication->enough_since == 0)
        return NEVER;
    if (w->setting.wait_replicas > 0)
        since = later(since, s->replication->enough_since);
    if (s->slow_until != 0) /* what was sent last comes last */
        since = later(since, s->slow_until + w->setting.slow_ns);
    return since > w->now ? NEVER : since;
}

/* ... and its primary is confirmed. */
static uint64_t confirmed_since(struct world *w, const struct process *p)
{
    uint64_t calm = w->sentinels ? sentinels_calm_since(w) : 0;
    if (calm == 0 || calm == NEVER)
        return calm;
    uint64_t since = calm + 1000 * MS;
    return since <= w->now &&
                   confirm_covers(p->link[0].eligibility.confirmed_at, w->now)
               ? since
               : NEVER;
}

static void look_at_process(struct world *w, const struct process *p)
{
    struct progress *g = &w->progress;
    unsigned reached = 0;
    for (unsigned i = 0; i < w->options.servers; i++) {
        uint64_t since = p->alive ? reached_since(w, p, i) : NEVER;
        since = later(since, confirmed_since(w, p));
        g->reached[p->index][i] = since;
        reached += since != NEVER;
    }
    g->able[p->index] = p->alive && w->now >= p->paused_until &&
                        reached >= quorum_of(w->options.servers);
}

/* ---------------------------------------------------------- what keys last */

/* Of the cleanups that may delete it. */
enum progress_of { NONE_OF_IT, LATER, UNDER_WAY };

static enum progress_of cleanups_of(
    const struct world *w, const struct link *l, uint64_t token)
{
    enum progress_of all = NONE_OF_IT;
    for (struct list *n = l->cleaners.next; n != &l->cleaners; n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, node);
        const struct cleanup *c = &k->cleanup;
        if (k->message.token != token || c->in_use ||
            c->state == CLEANUP_WATCHING)
            continue;
        if (c->state != CLEANUP_IDLE || c->next_try <= w->now)
            return UNDER_WAY;
        all = LATER;
    }
    return all;
}

static bool acquires(const struct worker *k)
{
    return handle_calls(k, CALL_ACQUIRE) || handle_calls(k, CALL_BEGIN);
}

static bool lasts(const struct world *w, unsigned server, uint64_t token)
{
    const struct token *t = &w->checker.token[token];
    const struct process *p = &w->process[t->process];
    if (!w->progress.able[p->index] || p->life != t->life || t->left ||
        t->shared || t->strayed & 1u << server ||
        w->progress.reached[p->index][server] == NEVER)
        return true;
    enum progress_of progress = cleanups_of(w, &p->link[server], token);
    if (progress != NONE_OF_IT)
        return progress == LATER;
    for (unsigned i = 0; i < w->setting.workers; i++) {
        const struct worker *k = &p->worker[i];
        if (k->token == token && k->state != PROGRAM_IDLE)
            return !acquires(k);
    }
    return false;
}

/* Does every token that is wanted for the name fit? Over several servers one
 * that does not keeps its votes from those that do, round after round. */
static bool all_fit(
    const struct world *w, unsigned name, const struct held *held)
{
    bool fit = true;
    for (unsigned i = 0; i < w->setting.processes && fit; i++) {
        const struct process *p = &w->process[i];
        for (unsigned j = 0; p->alive && j < w->setting.workers && fit; j++) {
            const struct worker *k = &p->worker[j];
            fit = !acquires(k) || k->name != name || held_fits(held, k->share);
        }
    }
    return fit;
}

/* Has it to wait for a holder that lasts, or for somebody in line who has? */
static bool is_closed(
    const struct world *w, const struct worker *k, unsigned server)
{
    const struct held *held = &w->progress.held[server][k->name];
    const struct queue *q = &w->server[server].data.queue[k->name];
    bool fits = w->options.servers > 1 ? all_fit(w, k->name, held)
                                       : held_fits(held, k->share);
    if (k->share.weight && queue_holds_back(w, &w->server[server], k->name))
        return true;
    for (unsigned i = 0; i < q->count && fits; i++)
        fits = held_fits(held, share_of(w, q->place[i].token));
    return !fits;
}

static void look_at_holders(struct world *w, unsigned server)
{
    struct progress *g = &w->progress;
    for (unsigned n = 0; n < w->setting.names; n++)
        g->held[server][n] = checker_lasting(w, &w->server[server], n, lasts);
    for (unsigned i = 0; i < w->setting.processes; i++)
        for (unsigned j = 0; j < w->setting.workers; j++)
            if (is_closed(w, &w->process[i].worker[j], server))
                g->closed_at[i][j][server] = w->now;
}

static void look_at_keys(struct world *w, unsigned server)
{
    struct progress *g = &w->progress;
    const struct model_server *s = &w->server[server];
    if (w->setting.permits) {
        look_at_holders(w, server);
        return;
    }
    for (unsigned n = 0; n < w->setting.names; n++) {
        uint64_t token = server_peek(w, s, n);
        bool lasting = token != 0 && lasts(w, server, token);
        if (lasting || g->lasting[server][n])
            g->free_since[server][n] = w->now;
        g->lasting[server][n] = lasting;
    }
}

/* --------------------------------------------------------------- who waits */

/* Since when a quorum is open to it; NEVER: none is. */
static uint64_t open_since(const struct world *w, const struct worker *k)
{
    const struct progress *g = &w->progress;
    uint64_t since[MAX_SERVERS];
    unsigned count = 0, quorum = quorum_of(w->options.servers);
    for (unsigned i = 0; i < w->options.servers; i++) {
        uint64_t at = g->reached[k->process->index][i];
        if (at == NEVER || g->lasting[i][k->name])
            continue;
        at = later(at, g->free_since[i][k->name]);
        at = later(at, g->closed_at[k->process->index][k->index][i]);
        unsigned place = count++;
        for (; place > 0 && since[place - 1] > at; place--)
            since[place] = since[place - 1];
        since[place] = at;
    }
    return count >= quorum ? since[quorum - 1] : NEVER;
}

/* Since when a quorum answers it at once. */
static uint64_t open_to(const struct world *w, const struct process *p)
{
    uint64_t since[MAX_SERVERS];
    unsigned count = w->options.servers;
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = w->progress.reached[p->index][i];
        unsigned place = i;
        for (; place > 0 && since[place - 1] > at; place--)
            since[place] = since[place - 1];
        since[place] = at;
    }
    return since[quorum_of(count) - 1];
}

static void look_at_worker(struct world *w, const struct worker *k)
{
    struct progress *g = &w->progress;
    uint64_t since = open_since(w, k);
    if (since == NEVER)
        return;
    since = later(since, later(k->began, k->process->paused_until));
    since = later(since, g->granted_at[k->name]);
    uint64_t waited = w->now - since, bound = bound_of(w, k->name);
    unsigned percent = (unsigned)(100 * waited / bound);
    g->waited = percent > g->waited ? percent : g->waited;
    if (waited > bound)
        checker_waits_long(w, k, since);
}

/* It wants the lock alone. Those who share it give it back soon, but when a
 * trouble strikes. */
static void look_at_writer(struct world *w, const struct worker *k)
{
    struct progress *g = &w->progress;
    uint64_t since = w->faults.struck_at + TROUBLE_OVER;
    if (open_to(w, k->process) == NEVER)
        return;
    since = later(since, open_to(w, k->process));
    since = later(since, later(k->began, k->process->paused_until));
    since = later(since, g->alone_at[k->name]);
    if (since >= w->now)
        return;
    unsigned ms = (unsigned)((w->now - since) / MS);
    g->starved_ms = ms > g->starved_ms ? ms : g->starved_ms;
    if (w->now - since > STARVES)
        checker_starves(w, k, since);
}

static bool waits(const struct world *w, const struct worker *k)
{
    return acquires(k) && w->now < k->life.vote.acquire.terms.wait_until;
}

static void look_at_budget(struct world *w, const struct worker *k)
{
    uint64_t *most = &w->progress.budget_ns[k->name];
    if (acquires(k))
        *most = later(*most, k->life.vote.acquire.terms.answer_timeout_ns);
}

void progress_look(struct world *w)
{
    unsigned looks = INVARIANT(I6) | INVARIANT(I15);
    if (w->setting.readers)
        looks |= INVARIANT(I21);
    if (w->now < w->progress.next_look || !(w->checker.checked & looks))
        return;
    w->progress.next_look = w->now + LOOK_EVERY;
    groups_look(w);
    for (unsigned i = 0; i < w->options.servers; i++)
        look_at_server(w, i);
    for (unsigned i = 0; i < w->setting.processes; i++)
        look_at_process(w, &w->process[i]);
    for (unsigned i = 0; i < w->options.servers; i++)
        look_at_keys(w, i);
    for (unsigned i = 0; i < w->setting.processes; i++) {
        const struct process *p = &w->process[i];
        for (unsigned j = 0; p->alive && j < w->setting.workers; j++)
            look_at_budget(w, &p->worker[j]);
    }
    for (unsigned i = 0; i < w->setting.processes; i++) {
        const struct process *p = &w->process[i];
        for (unsigned j = 0; w->progress.able[i] && j < w->setting.workers; j++)
            if (waits(w, &p->worker[j])) {
                look_at_worker(w, &p->worker[j]);
                if (w->setting.readers && p->worker[j].share.weight == 0)
                    look_at_writer(w, &p->worker[j]);
            }
    }
}
