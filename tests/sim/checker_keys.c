/* SPDX-License-Identifier: MIT */
/*
 * Which keys may stand at a server, and who has to remove them: I5.
 *
 * Invariant: what is nobody's is found while it stands, or after all have
 * stopped.
 */
#include "sim/checker.h"
#include "sim/world.h"

/* ------------------------------------------------------ what nobody removes */

static void brought_back(
    struct world *w, const struct model_server *s, uint64_t token)
{
    if (token == 0)
        return;
    checker_facts(&w->checker, token)->left = true;
    checker_facts(&w->checker, token)->strayed |= 1u << s->index;
}

void checker_rewound(struct world *w, struct model_server *s)
{
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        const struct queue *q = &s->data.queue[i];
        const struct holders *h = &s->data.holders[i];
        brought_back(w, s, server_value(w, s, i));
        for (unsigned j = 0; j < h->count; j++)
            brought_back(w, s, h->holder[j].token);
        for (unsigned j = 0; j < q->count; j++) /* it may be granted again */
            brought_back(w, s, q->place[j].token);
    }
}

static void left_if_shared(struct world *w, uint64_t token)
{
    struct token *t = checker_facts(&w->checker, token);
    t->left |= t->shared;
}

void checker_died(struct world *w, const struct process *p)
{
    for (unsigned i = 0; i < w->setting.workers; i++)
        left_if_shared(w, p->worker[i].token);
    for (unsigned i = 0; i < w->options.servers; i++) {
        const struct list *all = &p->link[i].cleaners;
        for (struct list *n = all->next; n != all; n = n->next)
            left_if_shared(
                w, list_entry(n, struct cleaner, node)->message.token);
    }
}

/* ------------------------------------------------------------ now and then */

static bool wanted(const struct world *w, const struct process *p,
    unsigned server, uint64_t token)
{
    for (unsigned i = 0; i < w->setting.workers; i++) {
        const struct worker *k = &p->worker[i];
        if (k->token == token && k->state != PROGRAM_IDLE)
            return true;
    }
    const struct list *all = &p->link[server].cleaners;
    for (struct list *n = all->next; n != all; n = n->next)
        if (list_entry(n, struct cleaner, node)->message.token == token)
            return true;
    return false;
}

static bool wanted_by_any(
    const struct world *w, unsigned server, uint64_t token)
{
    for (unsigned i = 0; i < w->setting.processes; i++)
        if (w->process[i].alive && wanted(w, &w->process[i], server, token))
            return true;
    return false;
}

/* It waits in line, though nobody waits for it nor takes it out. */
static void check_place(
    struct world *w, unsigned server, unsigned name, uint64_t token)
{
    const struct token *t = checker_facts(&w->checker, token);
    const struct process *p = &w->process[t->process];
    bool died = !p->alive || p->life != t->life;
    if (!died && !(t->strayed & 1u << server) && !wanted(w, p, server, token))
        checker_broken(w, I5, "t%llu is in line for n%u, and nobody cares",
            (unsigned long long)token, name);
}

static void check_key(
    struct world *w, unsigned server, unsigned name, uint64_t token)
{
    const struct token *t = checker_facts(&w->checker, token);
    const struct process *p = &w->process[t->process];
    bool died = !p->alive || p->life != t->life;
    if (token != 0 && !died && !t->left && !(t->strayed & 1u << server) &&
        !wanted(w, p, server, token) &&
        !(t->shared && wanted_by_any(w, server, token)))
        checker_broken(w, I5, "t%llu of n%u stands at s%u, and nobody cares",
            (unsigned long long)token, name, server);
}

void checker_begun(struct world *w, unsigned name, uint64_t token)
{
    const struct token *t = checker_facts(&w->checker, token);
    const struct process *p = &w->process[t->process];
    bool died = !p->alive || p->life != t->life;
    if (!died && !(t->strayed & 1u) && !wanted(w, p, 0, token))
        checker_broken(w, I5, "t%llu has begun n%u, and nobody cares",
            (unsigned long long)token, name);
}

static void check_holders(
    struct world *w, struct model_server *s, unsigned name)
{
    const struct holders *h = &s->data.holders[name];
    for (unsigned i = 0; i < h->count; i++)
        if (holders_peek(w, s, name, h->holder[i].token))
            check_key(w, s->index, name, h->holder[i].token);
    checker_set_ends(w, s, name);
}

void checker_orphans(struct world *w)
{
    ledger_orphans(w);
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct model_server *s = &w->server[i];
        for (unsigned n = 0; n < w->setting.names; n++) {
            const struct queue *q = &s->data.queue[n];
            check_key(w, i, n, server_value(w, s, n));
            check_holders(w, s, n);
            for (unsigned j = 0; j < q->count; j++)
                check_place(w, i, n, q->place[j].token);
        }
    }
}

static void check_line_gone(
    struct world *w, struct model_server *s, unsigned name)
{
    const struct queue *q = &s->data.queue[name];
    bool line = queue_length(w, s, name) > 0, mark = queue_marked(w, s, name);
    int64_t end = line ? q->until_ms : q->marked_until_ms;
    if ((line || mark) && end - server_clock_ms(w, s) > s->stepped_back_ms)
        checker_broken(w, I5, "the %s of n%u is still at s%u",
            line ? "line" : "mark of a line", name, s->index);
}

void checker_leaks(struct world *w)
{
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct model_server *s = &w->server[i];
        for (unsigned n = 0; n < w->setting.names; n++) {
            uint64_t token = server_value(w, s, n);
            int64_t over = s->data.key[n].until_ms - server_clock_ms(w, s);
            if (token != 0 && over > s->stepped_back_ms)
                checker_broken(w, I5, "t%llu of n%u still stands at s%u",
                    (unsigned long long)token, n, i);
            const struct holders *h = holders_of(w, s, n);
            if (h->count > 0 &&
                h->until_ms - server_clock_ms(w, s) > s->stepped_back_ms)
                checker_broken(
                    w, I5, "the holders of n%u are still at s%u", n, i);
            check_line_gone(w, s, n);
        }
    }
}
