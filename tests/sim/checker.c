/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the first invariant that breaks is the one that is reported; what is
 * checked is computed here, from what was done, and not taken from the
 * machines that are on trial.
 */
#include "sim/checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/world.h"

static void broken(
    struct world *w, enum invariant which, const char *format, ...)
{
    struct checker *c = &w->checker;
    if (c->broken || !(c->checked & INVARIANT(which)))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->why, sizeof c->why, format, arguments);
    va_end(arguments);
    c->broken = which;
    note(w, "I%llu is broken:", c->why, which);
}

void checker_start(struct world *w)
{
    struct checker *c = &w->checker;
    *c = (struct checker){.checked = w->options.checked, .tokens = 1};
    c->room = 256;
    c->token = calloc(c->room, sizeof *c->token);
    if (!c->token)
        abort();
}

void checker_end(struct world *w)
{
    free(w->checker.token);
}

static struct token *facts_of(struct world *w, uint64_t token)
{
    return &w->checker.token[token];
}

uint64_t checker_token(struct world *w, const struct worker *k)
{
    struct checker *c = &w->checker;
    if (c->tokens == c->room) {
        c->room *= 2;
        c->token = realloc(c->token, c->room * sizeof *c->token);
        if (!c->token)
            abort();
    }
    c->token[c->tokens] = (struct token){.name = k->name,
        .process = k->process->index,
        .life = k->process->life};
    return c->tokens++;
}

/* ------------------------------------------- what the servers have done */

/* Not lease_deadline(): that is on trial, too. */
static uint64_t latest_deadline(
    const struct world *w, uint64_t sent_at, uint32_t ttl_ms)
{
    uint64_t ttl = ttl_ms * MS;
    uint64_t drift = ttl / 1000000 * w->setting.drift_ppm + 2 * MS;
    return ttl > drift ? sent_at + ttl - drift : 0;
}

void checker_vouched(struct world *w, const struct model_server *s,
    const struct message *m, uint32_t ttl_ms)
{
    uint64_t *bound = &facts_of(w, m->token)->bound[s->index];
    *bound = later(*bound, latest_deadline(w, m->sent_at, ttl_ms));
}

void checker_set(
    struct world *w, const struct model_server *s, const struct message *m)
{
    struct token *t = facts_of(w, m->token);
    unsigned bit = 1u << s->index;
    if (t->settled & ~t->strayed & bit)
        broken(w, I8, "t%llu is set at s%u, though it was known to be undone",
            (unsigned long long)m->token, s->index);
    t->set |= bit;
    checker_vouched(w, s, m, m->ttl_ms);
}

void checker_deleted(struct world *w, const struct model_server *s,
    const struct message *m, uint64_t stood)
{
    if (stood != m->token)
        broken(w, I4, "s%u deletes t%llu for who has t%llu", s->index,
            (unsigned long long)stood, (unsigned long long)m->token);
    facts_of(w, stood)->deleted |= 1u << s->index;
}

void checker_rewound(struct world *w, struct model_server *s)
{
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        uint64_t token = server_value(w, s, i);
        if (token == 0)
            continue;
        facts_of(w, token)->left = true;
        facts_of(w, token)->strayed |= 1u << s->index;
    }
}

/* ---------------------------------------------- what the clients take for so
 */

static unsigned count_bits(unsigned mask)
{
    unsigned count = 0;
    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

void checker_ended(struct world *w, const struct worker *k)
{
    const struct token *t = facts_of(w, k->token);
    unsigned quorum = quorum_of(w->options.servers);
    checker_orphans(w);
    if (k->operation == ACQUIRING && k->result == RESULT_FAULT &&
        count_bits(t->set) >= quorum)
        broken(w, I8, "c%u.%u: the fault of t%llu was applied",
            k->process->index, k->index, (unsigned long long)k->token);
    if (k->operation == RELEASING && k->result == RESULT_OK &&
        count_bits(t->deleted) < quorum)
        broken(w, I8, "c%u.%u: the released t%llu was not deleted",
            k->process->index, k->index, (unsigned long long)k->token);
    if (k->operation == RELEASING && k->result == RESULT_LOST &&
        count_bits(t->deleted) >= quorum)
        broken(w, I8, "c%u.%u: t%llu was not lost, but released",
            k->process->index, k->index, (unsigned long long)k->token);
}

void checker_won(struct world *w, const struct worker *k)
{
    for (unsigned i = 0; i < w->options.servers; i++)
        if (k->request[i].cut)
            checker_strayed(w, i, k->token);
}

static void check_exclusion(struct world *w, const struct worker *k)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *other = &w->process[i].worker[j];
            if (other->name == k->name && other->token != k->token &&
                worker_held(w, other))
                broken(w, I1, "n%u is held by c%u.%u (t%llu) and c%u.%u",
                    k->name, i, j, (unsigned long long)other->token,
                    k->process->index, k->index);
        }
    }
}

static void check_deadline(struct world *w, const struct worker *k)
{
    const struct token *t = facts_of(w, k->token);
    unsigned allow = 0;
    for (unsigned i = 0; i < w->options.servers; i++)
        allow += t->bound[i] >= k->deadline;
    if (allow < quorum_of(w->options.servers))
        broken(w, I3, "c%u.%u counts too long on t%llu", k->process->index,
            k->index, (unsigned long long)k->token);
}

/* Two that were both believed in have no order but the servers'; their
 * numbers differ all the same. */
static void check_fence(struct world *w, const struct worker *k)
{
    struct fences *f = &w->checker.fences[k->name];
    bool skewed = w->options.troubles & 1u << TROUBLE_SKEW;
    size_t first = f->count > FENCES_KEPT ? f->count - FENCES_KEPT : 0;
    for (size_t i = first; i < f->count; i++) {
        uint64_t number = f->of[i % FENCES_KEPT].number;
        bool before = !skewed || f->of[i % FENCES_KEPT].told_at < k->began;
        if (before ? number >= k->fence : number == k->fence)
            broken(w, I2, "n%u: fence %llu comes after %llu", k->name,
                (unsigned long long)k->fence, (unsigned long long)number);
    }
    f->of[f->count % FENCES_KEPT].number = k->fence;
    f->of[f->count++ % FENCES_KEPT].told_at = w->now;
    w->fences++;
}

void checker_granted(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu holds n%llu t%llu for %llu ns", NULL, k->process->index,
        k->index, k->name, k->token, deadline_left(k->deadline, w->now));
    check_exclusion(w, k);
    check_deadline(w, k);
    progress_granted(w, k->name);
    if (k->operation != EXTENDING)
        w->grants++;
    if (k->operation == ACQUIRING && k->fence != 0)
        check_fence(w, k);
}

void checker_renewed(struct world *w, const struct worker *k)
{
    check_exclusion(w, k);
    check_deadline(w, k);
}

void checker_lost(struct world *w, const struct worker *k, uint64_t deadline)
{
    if (w->now > deadline && w->now != k->process->paused_until)
        broken(w, I9, "c%u.%u does not learn in time of the loss of t%llu",
            k->process->index, k->index, (unsigned long long)k->token);
}

void checker_settled(struct world *w, unsigned server, uint64_t token)
{
    struct token *t = facts_of(w, token);
    t->settled |= 1u << server;
    if (server_value(w, &w->server[server], t->name) == token &&
        !(t->strayed & 1u << server))
        broken(w, I8, "t%llu stands at s%u, though it was paid",
            (unsigned long long)token, server);
}

void checker_lapsed(struct world *w, unsigned server, uint64_t token)
{
    facts_of(w, token)->strayed |= 1u << server;
}

void checker_strayed(struct world *w, unsigned server, uint64_t token)
{
    facts_of(w, token)->strayed |= 1u << server;
    w->strays++;
}

void checker_left(struct world *w, uint64_t token)
{
    facts_of(w, token)->left = true;
}

void checker_handed(struct world *w, uint64_t token, const struct worker *heir)
{
    struct token *t = facts_of(w, token);
    /* Where the token does not stand yet it may come later, on a connection
     * that the heir knows nothing of. */
    t->strayed |= ~t->set;
    t->process = heir->process->index;
    t->life = heir->process->life;
}

/* ------------------------------------------------------------ now and then */

static bool wanted(const struct world *w, const struct process *p,
    unsigned server, uint64_t token)
{
    for (unsigned i = 0; i < w->setting.workers; i++) {
        const struct worker *k = &p->worker[i];
        if (k->token == token && k->life_state != LIFE_IDLE)
            return true;
    }
    const struct list *debts = &p->link[server].debts;
    for (struct list *n = debts->next; n != debts; n = n->next)
        if (list_entry(n, struct debt, node)->message.token == token)
            return true;
    return false;
}

void checker_orphans(struct world *w)
{
    for (unsigned i = 0; i < w->options.servers; i++) {
        for (unsigned n = 0; n < w->setting.names; n++) {
            uint64_t token = server_value(w, &w->server[i], n);
            const struct token *t = facts_of(w, token);
            const struct process *p = &w->process[t->process];
            bool died = !p->alive || p->life != t->life;
            if (token != 0 && !died && !t->left && !(t->strayed & 1u << i) &&
                !wanted(w, p, i, token))
                broken(w, I5, "t%llu of n%u stands at s%u, and nobody cares",
                    (unsigned long long)token, n, i);
        }
    }
}

void checker_leaks(struct world *w)
{
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct model_server *s = &w->server[i];
        for (unsigned n = 0; n < w->setting.names; n++) {
            uint64_t token = server_value(w, s, n);
            int64_t over = s->data.key[n].until_ms - server_clock_ms(w, s);
            if (token != 0 && over > s->stepped_back_ms)
                broken(w, I5, "t%llu of n%u still stands at s%u",
                    (unsigned long long)token, n, i);
        }
    }
}

void checker_twice(struct world *w, const struct worker *k)
{
    broken(w, I10, "c%u.%u asks a server twice at once", k->process->index,
        k->index);
}

void checker_waits_long(
    struct world *w, const struct worker *k, uint64_t since)
{
    broken(w, I6, "nobody gets n%u, which c%u.%u could have had since %llu",
        k->name, k->process->index, k->index,
        (unsigned long long)(since / MS));
}

void checker_stands_still(struct world *w)
{
    broken(w, I14, "it is %llu.%06llu ms, again and again",
        (unsigned long long)(w->now / MS), (unsigned long long)(w->now % MS));
}
