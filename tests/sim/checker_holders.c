/* SPDX-License-Identifier: MIT */
/*
 * Locks that several hold: no more permits than the smallest limit among the
 * holders (I1), by what the clients believe and by what a server has granted;
 * who is refused does not fit (I11); nobody joins them in a pause (I18), nor
 * while a client that waits without a line holds others back (I15).
 *
 * Invariant: what is held is counted here, from the tokens, and not taken from
 * the head of the set nor from what a script has counted.
 */
#include "sim/checker.h"
#include "sim/world.h"

static void count(struct held *held, struct share share)
{
    uint64_t most = share.weight == 0   ? 1
                    : share.permits > 0 ? share.permits
                                        : NO_LIMIT;
    held->count++;
    held->used += share.weight ? share.weight : 1;
    held->most = earlier(held->most, most);
}

bool held_fits(const struct held *held, struct share share)
{
    struct held with = *held;
    count(&with, share);
    return with.used <= with.most;
}

/* ------------------------------------------------- what the clients believe */

/* Two handles may have one token. */
static bool is_counted(
    const struct world *w, const struct worker *k, const struct worker *last)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *other = &w->process[i].worker[j];
            if (other == last)
                return false;
            if (other->token == k->token && program_holds(w, other))
                return true;
        }
    }
    return false;
}

struct held checker_believed(struct world *w, const struct worker *k)
{
    struct held held = {.most = NO_LIMIT};
    count(&held, share_of(w, k->token));
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *other = &w->process[i].worker[j];
            if (other->name != k->name || other->token == k->token ||
                !program_holds(w, other) || checker_overtaken(w, other) ||
                is_counted(w, other, other))
                continue;
            count(&held, share_of(w, other->token));
        }
    }
    return held;
}

/* ---------------------------------------------- what a server has granted
 */

static struct held granted(
    const struct world *w, const struct model_server *s, unsigned name)
{
    struct held held = {.most = NO_LIMIT};
    const struct holders *h = &s->data.holders[name];
    int64_t now_ms = server_peek_ms(w, s);
    if (server_peek(w, s, name))
        count(&held, (struct share){0, 0});
    for (unsigned i = 0; i < h->count && now_ms < h->until_ms; i++)
        if (now_ms < h->holder[i].until_ms)
            count(&held, share_of(w, h->holder[i].token));
    return held;
}

void checker_joins_holders(
    struct world *w, struct model_server *s, unsigned name)
{
    struct held held = granted(w, s, name);
    if (held.used > held.most)
        checker_broken(w, I1, "s%u has granted %llu permits of n%u, of %llu",
            s->index, (unsigned long long)held.used, name,
            (unsigned long long)held.most);
    if (held.count > w->most.holders)
        w->most.holders = held.count;
}

void checker_set_begins(struct world *w, struct model_server *s, unsigned name)
{
    if (!w->checker.of_former)
        w->checker.set_since_ms[s->index][name] = server_peek_ms(w, s);
}

/* Is it a time in which nobody joins the holders, and a tick from its ends? */
static bool pauses(
    const struct world *w, const struct model_server *s, unsigned name)
{
    int64_t since_ms = w->checker.set_since_ms[s->index][name];
    int64_t every_ms = w->setting.pause_every_ms;
    int64_t stands_ms = server_peek_ms(w, s) - since_ms;
    return since_ms > 0 && stands_ms >= 0 &&
           stands_ms % every_ms >= every_ms - HOLDERS_PAUSE_MS;
}

void checker_joins_in_pause(
    struct world *w, const struct model_server *s, unsigned name)
{
    struct held held = granted(w, s, name);
    if (w->setting.permits && !w->checker.of_former && held.count > 0 &&
        pauses(w, s, name))
        checker_broken(
            w, I18, "n%u is granted to another one in its pause", name);
}

void checker_refused(
    struct world *w, const struct model_server *s, const struct message *m)
{
    struct held held = granted(w, s, m->name);
    bool pause = m->may_wait && held.count > 0 && pauses(w, s, m->name);
    if (!w->checker.of_former &&
        w->checker.set_since_ms[s->index][m->name] > 0 && !pause &&
        held_fits(&held, share_of(w, m->token)))
        checker_broken(w, I11, "s%u refuses n%u to t%llu, which fits", s->index,
            m->name, (unsigned long long)m->token);
}

/* A server's clock may be wrong by one percent. Who waits in line may end it
 * earlier, and so may what breaks the line. */
void checker_holds_back(
    struct world *w, const struct model_server *s, unsigned name, uint32_t ms)
{
    struct held_back *h = &w->checker.held_back[s->index][name];
    uint64_t for_ns = ms_to_ns(ms), off = for_ns / 100 + 2 * MS;
    bool line = w->options.servers == 1 && w->setting.in_line;
    if (w->checker.of_former)
        return;
    if (!line && for_ns > off)
        h->least = later(h->least, w->now + for_ns - off);
    if (h->most != NEVER)
        h->most = later(h->most, w->now + for_ns + off);
    else if (h->least == 0)
        h->most = w->now + for_ns + off;
}

void checker_holds_back_no_more(
    struct world *w, const struct model_server *s, unsigned name)
{
    if (!w->checker.of_former)
        w->checker.held_back[s->index][name].least = 0;
}

void checker_refused_back(
    struct world *w, const struct model_server *s, const struct message *m)
{
    if (!w->checker.of_former &&
        w->now > w->checker.held_back[s->index][m->name].most)
        checker_broken(w, I11,
            "s%u holds t%llu back from n%u, which nobody has asked for",
            s->index, (unsigned long long)m->token, m->name);
}

void checker_joins_held_back(
    struct world *w, const struct model_server *s, unsigned name)
{
    if (!w->checker.of_former &&
        w->now < w->checker.held_back[s->index][name].least)
        checker_broken(w, I15,
            "s%u grants n%u, which is held back for another one", s->index,
            name);
}

uint64_t checker_other_holder(const struct world *w,
    const struct model_server *s, const struct message *m)
{
    const struct token *t = checker_facts(&w->checker, m->token);
    const struct holders *h = &s->data.holders[m->name];
    uint64_t any = 0;
    for (unsigned i = 0; i < h->count; i++) {
        uint64_t token = h->holder[i].token;
        const struct token *of = checker_facts(&w->checker, token);
        if (server_peek_ms(w, s) >= h->holder[i].until_ms)
            continue;
        any = token;
        if (of->process != t->process || of->life != t->life ||
            of->worker != t->worker || of->call != t->call)
            return token;
    }
    return any;
}

/* ------------------------------------------------------------- now and then
 */

/* A key that outlives its last lease keeps the lock for nobody. */
void checker_set_ends(
    struct world *w, const struct model_server *s, unsigned name)
{
    const struct holders *h = &s->data.holders[name];
    int64_t now_ms = server_peek_ms(w, s);
    bool lasts = h->count > 0 && now_ms < h->until_ms;
    if (lasts && granted(w, s, name).count == 0)
        checker_broken(w, I5,
            "the key of n%u stands at s%u, and nobody holds it", name,
            s->index);
}

struct held checker_lasting(const struct world *w, const struct model_server *s,
    unsigned name, bool (*lasts)(const struct world *, unsigned, uint64_t))
{
    struct held held = {.most = NO_LIMIT};
    const struct holders *h = &s->data.holders[name];
    uint64_t alone = server_peek(w, s, name);
    int64_t now_ms = server_peek_ms(w, s);
    if (alone && lasts(w, s->index, alone))
        count(&held, (struct share){0, 0});
    for (unsigned i = 0; i < h->count && now_ms < h->until_ms; i++)
        if (now_ms < h->holder[i].until_ms &&
            lasts(w, s->index, h->holder[i].token))
            count(&held, share_of(w, h->holder[i].token));
    if (held.count > 0 && pauses(w, s, name))
        count(&held, (struct share){0, 0}); /* nobody fits */
    return held;
}
