/* SPDX-License-Identifier: MIT */
/*
 * With wait_replicas: what is told as held or recorded is on so many replicas
 * (I19), and a failover of so many servers loses none of it (I20).
 *
 * Invariant: what replicas have is taken from them, and not from what WAIT has
 * said.
 */
#include "sim/checker.h"
#include "sim/network.h"
#include "sim/replication.h"
#include "sim/world.h"

/* By how much the clock of a primary may be ahead of that of the one before,
 * which has given the lease, and has handed over. */
#define CLOCKS (50 * MS)

void checker_copied(struct world *w, const struct model_server *s,
    const struct logged_write *written)
{
    struct token *t = checker_facts(&w->checker, written->token);
    uint64_t *copied = &t->copied[s->index];
    *copied = later(*copied, written->deadline);
    if (written->deadline == 0)
        t->copied_offset = later(t->copied_offset, written->offset);
}

void checker_void(struct world *w, uint64_t token)
{
    checker_facts(&w->checker, token)->is_void = true;
}

/* An adoption only reads. What its lease is extended by counts again. */
void checker_holds_copies(struct world *w, const struct worker *k)
{
    const struct token *t = checker_facts(&w->checker, k->token);
    __typeof__(&w->checker.of[0][0]) of =
        &w->checker.of[k->process->index][k->index];
    uint64_t promised = k->life.lease.promised;
    unsigned copies = 0;
    if (w->setting.wait_replicas == 0)
        return;
    if (k->life.call == CALL_ADOPT && of->adopted == 0)
        of->adopted = promised;
    if (promised <= of->adopted)
        return;
    of->copied = promised;
    for (unsigned i = 0; i < w->options.servers; i++)
        copies += t->copied[i] >= promised;
    if (copies < quorum_of(w->options.servers))
        checker_broken(w, I19, "c%u.%u counts on t%llu, which too few have",
            k->process->index, k->index, (unsigned long long)k->token);
}

void checker_recorded(struct world *w, const struct worker *k)
{
    const struct message *m = &k->request[TRACK_CALL][0].message;
    struct ledger *l = &w->checker.ledger[k->name];
    if (w->setting.wait_replicas == 0 || !w->setting.replicated)
        return;
    if (checker_facts(&w->checker, m->token)->copied_offset < m->wrote)
        checker_broken(w, I19,
            "c%u.%u is told of n%u t%llu, which too few have",
            k->process->index, k->index, k->name, (unsigned long long)m->token);
    if (l->told_epoch != m->epoch) {
        l->told = 0;
        l->told_epoch = m->epoch;
    }
    l->told = later(l->told, m->wrote);
}

void checker_forgets_copies(struct world *w)
{
    for (unsigned i = 0; i < w->setting.processes; i++)
        for (unsigned j = 0; j < w->setting.workers; j++)
            w->checker.of[i][j].copied = 0;
}

/* When the lease of the token ends that has the lock; 0: it has not. */
static int64_t ends_ms(const struct data *data, unsigned name, uint64_t token)
{
    const struct key *key = &data->key[name];
    const struct holders *h = &data->holders[name];
    if (key->token == token)
        return key->until_ms;
    for (unsigned i = 0; i < h->count; i++)
        if (h->holder[i].token == token)
            return h->holder[i].until_ms < h->until_ms ? h->holder[i].until_ms
                                                       : h->until_ms;
    return 0;
}

/* Does it last for as long as k was told by what replicas have? */
static bool lasts(const struct world *w, struct model_server *s,
    const struct worker *k, const struct data *data)
{
    uint64_t until = w->checker.of[k->process->index][k->index].copied;
    int64_t left_ms = ends_ms(data, k->name, k->token) - server_clock_ms(w, s);
    return left_ms >= 0 &&
           ms_to_ns((uint64_t)left_ms) + CLOCKS >= until - w->now;
}

/* The primary has the lock that k relies on, and the replica has not, or not
 * for so long. */
static bool loses(const struct world *w, struct model_server *s,
    const struct worker *k, const struct replica *r)
{
    return lasts(w, s, k, &s->data) && !lasts(w, s, k, &r->data);
}

void checker_failover(
    struct world *w, struct model_server *s, const struct replica *r)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *k = &w->process[i].worker[j];
            if (w->options.servers == 1 && program_holds(w, k) &&
                !checker_overtaken(w, k) &&
                w->now < w->checker.of[i][j].copied && loses(w, s, k, r))
                checker_broken(w, I20, "t%llu of c%u.%u is lost",
                    (unsigned long long)k->token, i, j);
        }
    }
    for (unsigned n = 0; w->setting.once && n < w->setting.names; n++) {
        const struct ledger *l = &w->checker.ledger[n];
        if (l->told_epoch == s->epoch && l->told > r->offset)
            checker_broken(
                w, I20, "what was told of the record of n%u is lost", n);
    }
}

void checker_lost_writes(
    struct world *w, struct model_server *s, const struct replica *r)
{
    checker_forgets_copies(w);
    for (unsigned n = 0; w->setting.once && n < w->setting.names; n++)
        if (r->offset < s->offset)
            ledger_rewound(w, n, &r->data.record[n]);
}
