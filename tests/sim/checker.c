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

#include "sim/replication.h"
#include "sim/world.h"

#define NAME_OF_LIST(name, says) [name] = #name,
const char *const invariant_names[] = {INVARIANT_LIST(NAME_OF_LIST)};

#define BROKEN_OF_LIST(name, says) [name] = #name " is broken:",
static const char *const broken_words[] = {INVARIANT_LIST(BROKEN_OF_LIST)};

void checker_broken(
    struct world *w, enum invariant which, const char *format, ...)
{
    struct checker *c = &w->checker;
    if (c->broken || !(c->checked & INVARIANT(which)))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->why, sizeof(c->why), format, arguments);
    va_end(arguments);
    c->broken = which;
    note(w, broken_words[which], c->why, 0);
}

void checker_start(struct world *w)
{
    struct checker *c = &w->checker;
    *c = (struct checker){.checked = w->options.checked, .tokens = 1};
    c->room = 256;
    c->token = calloc(c->room, sizeof(*c->token));
    if (!c->token)
        abort();
}

void checker_end(struct world *w)
{
    free(w->checker.token);
}

uint64_t checker_token(struct world *w, const struct worker *k)
{
    struct checker *c = &w->checker;
    if (c->tokens == c->room) {
        c->room *= 2;
        c->token = realloc(c->token, c->room * sizeof(*c->token));
        if (!c->token)
            abort();
    }
    c->token[c->tokens] = (struct token){.share = k->share,
        .name = k->name,
        .process = k->process->index,
        .worker = k->index,
        .life = k->process->life,
        .call = k->began};
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

void checker_vouched(struct world *w, struct model_server *s,
    const struct message *m, uint32_t ttl_ms)
{
    uint64_t *bound = &checker_facts(&w->checker, m->token)->bound[s->index];
    uint64_t deadline = latest_deadline(w, m->sent_at, ttl_ms);
    *bound = later(*bound, deadline);
    if (m->kind != MESSAGE_LOOK)
        replication_promises(w, s, m->token, deadline);
}

void checker_set(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct token *t = checker_facts(&w->checker, m->token);
    unsigned bit = 1u << s->index;
    if (t->settled & ~t->strayed & bit && !s->former)
        checker_broken(w, I8,
            "t%llu is set at s%u, though it was known to be undone",
            (unsigned long long)m->token, s->index);
    t->set |= bit;
    if (t->share.weight == 0)
        checker_holds_back_no_more(w, s, m->name);
    checker_vouched(w, s, m, m->ttl_ms);
}

void checker_lost_hand_over(
    struct world *w, const struct model_server *s, const struct message *m)
{
    checker_facts(&w->checker, m->token)->set &= ~(1u << s->index);
}

void checker_answered(
    struct world *w, const struct model_server *s, const struct message *m)
{
    checker_facts(&w->checker, m->token)->answered |= 1u << s->index;
}

void checker_deleted(struct world *w, const struct model_server *s,
    const struct message *m, uint64_t stood)
{
    if (stood != m->token)
        checker_broken(w, I4, "s%u deletes t%llu for who has t%llu", s->index,
            (unsigned long long)stood, (unsigned long long)m->token);
    if (m->promised && m->sent_at >= m->promised)
        checker_broken(w, I4,
            "s%u deletes t%llu by an order that left after the "
            "deadline",
            s->index, (unsigned long long)stood);
    if (!m->promised && checker_facts(&w->checker, stood)->granted)
        checker_broken(w, I4,
            "s%u deletes t%llu, which was granted, by the order of "
            "an acquire",
            s->index, (unsigned long long)stood);
    checker_facts(&w->checker, stood)->deleted |= 1u << s->index;
}

void checker_capped(
    struct world *w, const struct model_server *s, const struct message *m)
{
    if (m->promised && m->sent_at >= m->promised)
        checker_broken(w, I4,
            "s%u cuts t%llu short by an order that left after the deadline",
            s->index, (unsigned long long)m->token);
    checker_facts(&w->checker, m->token)->capped |= 1u << s->index;
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

/* Its handle says so from now on, also before the caller is told. */
static void promised(struct world *w, const struct worker *k)
{
    if (k->life.unseen) /* of a BEGIN only then: nobody can have adopted it */
        return;
    w->checker.of[k->process->index][k->index].promised =
        k->life.lease.promised;
    checker_facts(&w->checker, k->token)->granted = true;
}

/* It stands at no quorum any more: whoever adopts it from now on is wrong. */
static void gave_up(struct world *w, struct token *t, uint64_t token)
{
    for (unsigned i = 0; t->shared && i < w->setting.processes; i++)
        for (unsigned j = 0; j < w->setting.workers; j++)
            if (w->process[i].worker[j].token == token)
                w->checker.of[i][j].overtaken = true;
    t->giving_up = false;
}

/* What a release, or a break of one's own value, says is true. */
static void check_release(struct world *w, const struct worker *k)
{
    const struct token *t = checker_facts(&w->checker, k->token);
    unsigned quorum = quorum_of(w->options.servers);
    bool relied = k->life.call == CALL_RELEASE &&
                  w->checker.of[k->process->index][k->index].relied;
    if (k->life.result == LIFE_OK &&
        count_bits(t->deleted | t->capped) < quorum)
        checker_broken(w, I8, "c%u.%u: the released t%llu was not deleted",
            k->process->index, k->index, (unsigned long long)k->token);
    if (relied && k->life.result == LIFE_LOST && !t->shared &&
        count_bits(t->deleted) >= quorum)
        checker_broken(w, I8, "c%u.%u: t%llu was not lost, but released",
            k->process->index, k->index, (unsigned long long)k->token);
}

void checker_ended(struct world *w, const struct worker *k)
{
    struct token *t = checker_facts(&w->checker, k->token);
    enum life_result result = k->life.result;
    bool recorded =
        result == LIFE_DONE || result == LIFE_DOUBT || result == LIFE_MISMATCH;
    checker_orphans(w);
    switch (k->life.call) {
    case CALL_ACQUIRE:
    case CALL_BEGIN:
        if (result == LIFE_BUSY)
            checker_busy_ends(w, k);
        if (recorded) /* it need not wait any longer */
            progress_granted(w, k->name);
        if (result == LIFE_FAULT && !t->is_void && !k->token_wanted &&
            count_bits(t->set) >= quorum_of(w->options.servers))
            checker_broken(w, I8, "c%u.%u: the fault of t%llu was applied",
                k->process->index, k->index, (unsigned long long)k->token);
        break;
    case CALL_RELEASE:
    case CALL_BREAK:
        check_release(w, k);
        if (result == LIFE_OK)
            gave_up(w, t, k->token);
        return;
    case CALL_EXTEND:
    case CALL_ADOPT:
        break;
    case CALL_INSPECT:
    default:
        return;
    }
    if (result == LIFE_OK)
        promised(w, k);
}

bool checker_overtaken(struct world *w, const struct worker *k)
{
    return checker_facts(&w->checker, k->token)->giving_up ||
           w->checker.of[k->process->index][k->index].overtaken;
}

static void check_exclusion(struct world *w, const struct worker *k)
{
    if (checker_overtaken(w, k))
        return;
    if (w->setting.permits) {
        struct held held = checker_believed(w, k);
        if (held.used > held.most)
            checker_broken(w, I1,
                "%llu permits of n%u are held, of %llu, one by c%u.%u (t%llu)",
                (unsigned long long)held.used, k->name,
                (unsigned long long)held.most, k->process->index, k->index,
                (unsigned long long)k->token);
    }
    for (unsigned i = 0; i < w->setting.processes && !w->setting.permits; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *other = &w->process[i].worker[j];
            if (other->name == k->name && other->token != k->token &&
                program_holds(w, other) && !checker_overtaken(w, other))
                checker_broken(w, I1,
                    "n%u is held by c%u.%u (t%llu) and c%u.%u", k->name, i, j,
                    (unsigned long long)other->token, k->process->index,
                    k->index);
        }
    }
    for (unsigned i = 0; i < w->setting.strangers; i++)
        if (w->stranger[i].name == k->name &&
            stranger_holds(w, &w->stranger[i]))
            checker_broken(w, I1, "n%u is held by stranger %u and c%u.%u",
                k->name, i, k->process->index, k->index);
}

static void check_deadline(struct world *w, const struct worker *k)
{
    const struct token *t = checker_facts(&w->checker, k->token);
    unsigned allow = 0;
    for (unsigned i = 0; i < w->options.servers; i++)
        allow += t->bound[i] >= k->life.lease.promised;
    if (allow < quorum_of(w->options.servers))
        checker_broken(w, I3, "c%u.%u counts too long on t%llu",
            k->process->index, k->index, (unsigned long long)k->token);
}

/* Two that were both believed in have no order but the servers'; their
 * numbers differ all the same. */
static void check_fence(struct world *w, const struct worker *k)
{
    struct fences *f = &w->checker.fences[k->name];
    uint64_t fence = k->life.fence;
    bool skewed = w->options.troubles & 1u << TROUBLE_SKEW;
    size_t first = f->count > FENCES_KEPT ? f->count - FENCES_KEPT : 0;
    for (size_t i = first; i < f->count; i++) {
        uint64_t number = f->of[i % FENCES_KEPT].number;
        bool before = !skewed || f->of[i % FENCES_KEPT].told_at < k->began;
        if (before ? number >= fence : number == fence)
            checker_broken(w, I2, "n%u: fence %llu comes after %llu", k->name,
                (unsigned long long)fence, (unsigned long long)number);
    }
    f->of[f->count % FENCES_KEPT].number = fence;
    f->of[f->count++ % FENCES_KEPT].told_at = w->now;
    w->sum.fences++;
}

void checker_granted(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu holds n%llu t%llu for %llu ns", NULL, k->process->index,
        k->index, k->name, k->token,
        deadline_left(k->life.lease.promised, w->now));
    check_exclusion(w, k);
    check_deadline(w, k);
    checker_holds_copies(w, k);
    progress_granted(w, k->name);
    if (share_of(w, k->token).weight == 0)
        progress_granted_alone(w, k->name);
    if (k->life.call != CALL_EXTEND)
        w->sum.grants++;
    if (k->life.call != CALL_EXTEND && share_of(w, k->token).weight > 0)
        w->sum.beside++;
    if (call_traits[k->life.call].acquires && k->life.handed_over)
        w->sum.lined++;
    if (call_traits[k->life.call].acquires && k->life.fence)
        check_fence(w, k);
}

void checker_handed_begin(struct world *w, struct worker *k)
{
    promised(w, k);
    checker_granted(w, k);
}

void checker_renewed(struct world *w, const struct worker *k)
{
    promised(w, k);
    check_exclusion(w, k);
    check_deadline(w, k);
    checker_holds_copies(w, k);
}

void checker_lost(struct world *w, const struct worker *k)
{
    uint64_t deadline = checker_promised(w, k);
    if (deadline && w->now > deadline && w->now != k->process->paused_until)
        checker_broken(w, I9,
            "c%u.%u does not learn in time of the loss of t%llu",
            k->process->index, k->index, (unsigned long long)k->token);
}

void checker_settled(struct world *w, unsigned server, uint64_t token)
{
    struct token *t = checker_facts(&w->checker, token);
    t->settled |= 1u << server;
    if (server_has(w, &w->server[server], t->name, token) &&
        !(t->strayed & 1u << server))
        checker_broken(w, I8, "t%llu stands at s%u, though it was cleaned up",
            (unsigned long long)token, server);
}

void checker_lapsed(
    struct world *w, unsigned server, uint64_t token, bool stray)
{
    struct token *t = checker_facts(&w->checker, token);
    t->strayed |= 1u << server;
    w->sum.strays += stray && t->granted;
}

void checker_left(struct world *w, uint64_t token)
{
    checker_facts(&w->checker, token)->left = true;
}

void checker_handed(struct world *w, uint64_t token, const struct worker *heir)
{
    struct token *t = checker_facts(&w->checker, token);
    /* Where the token does not stand yet it may come later, on a connection
     * that the heir knows nothing of. */
    t->strayed |= ~t->set;
    t->shared = true;
    w->sum.handed++;
    t->process = heir->process->index;
    t->life = heir->process->life;
}

void checker_begins(struct world *w, const struct worker *k)
{
    w->checker.of[k->process->index][k->index].promised = 0;
    w->checker.of[k->process->index][k->index].overtaken = false;
    w->checker.of[k->process->index][k->index].adopted = 0;
    w->checker.of[k->process->index][k->index].copied = 0;
}

uint64_t checker_promised(const struct world *w, const struct worker *k)
{
    return w->checker.of[k->process->index][k->index].promised;
}

void checker_gives_up(struct world *w, const struct worker *k)
{
    if (w->now < checker_promised(w, k))
        checker_facts(&w->checker, k->token)->giving_up = true;
}

void checker_releases(struct world *w, const struct worker *k, bool held)
{
    w->checker.of[k->process->index][k->index].relied = held;
}

/* ------------------------------------------------------------ now and then */

void checker_twice(struct world *w, const struct worker *k)
{
    checker_broken(w, I10, "c%u.%u asks a server twice at once",
        k->process->index, k->index);
}

void checker_waits_long(struct world *w, const struct worker *k, uint64_t since)
{
    checker_broken(w, I6,
        "nobody gets n%u, which c%u.%u could have had since %llu", k->name,
        k->process->index, k->index, (unsigned long long)(since / MS));
}

void checker_starves(struct world *w, const struct worker *k, uint64_t since)
{
    checker_broken(w, I21, "c%u.%u has waited for n%u beside others since %llu",
        k->process->index, k->index, k->name, (unsigned long long)(since / MS));
}

void checker_stands_still(struct world *w)
{
    checker_broken(w, I14, "it is %llu.%06llu ms, again and again",
        (unsigned long long)(w->now / MS), (unsigned long long)(w->now % MS));
}
