/* SPDX-License-Identifier: MIT */
/*
 * What was begun and what was done, from what the servers and the programs did.
 *
 * Invariant: nothing here is taken from a record, but to compare it.
 */
#include "sim/ledger.h"

#include "sim/network.h"
#include "sim/world.h"

static struct attempt *attempt_of(const struct world *w, uint64_t token)
{
    return &checker_facts(&w->checker, token)->attempt;
}

static struct ledger *page_of(struct world *w, unsigned name)
{
    return &w->checker.ledger[name];
}

void ledger_over(struct world *w, unsigned name)
{
    if (w->checker.of_former)
        return;
    struct ledger *l = page_of(w, name);
    *l = (struct ledger){.page = l->page + 1};
    note(w, "the record of n%llu is gone", NULL, name);
}

/* The attempt is on this page from now on. */
static void enter(struct world *w, unsigned name, uint64_t token)
{
    struct ledger *l = page_of(w, name);
    struct attempt *a = attempt_of(w, token);
    if (a->order != 0 && a->page == l->page)
        return;
    a->page = l->page;
    a->previous = l->last;
    a->order = ++w->attempts;
    l->last = token;
}

void ledger_rewound(struct world *w, unsigned name, const struct work_record *r)
{
    struct ledger *l = page_of(w, name);
    bool done = r->state == ONCE_DONE;
    *l = (struct ledger){.page = l->page + 1,
        .late = r->state == ONCE_NONE ? 0 : r->late,
        .done = done ? r->token : 0,
        .result = done ? r->result : 0};
    note(w, "the record of n%llu may be older", NULL, name);
    if (r->state == ONCE_NONE)
        return;
    struct attempt *a = attempt_of(w, r->token);
    a->put_back = true; /* that it was taken back may be lost */
    a->fingerprint = r->fingerprint;
    if (!record_is_open(r))
        return;
    enter(w, name, r->token);
    a->excused = false;
}

/* Another attempt of this page that nobody has excused; 0: none. */
static uint64_t open_beside(
    const struct world *w, unsigned name, uint64_t token)
{
    uint64_t other = w->checker.ledger[name].last;
    while (other && (other == token || attempt_of(w, other)->excused))
        other = attempt_of(w, other)->previous;
    return other;
}

/* ------------------------------------------------ what the servers have done
 */

void ledger_began(
    struct world *w, const struct message *m, const struct work_record *r)
{
    if (w->checker.of_former)
        return;
    struct ledger *l = page_of(w, m->name);
    struct attempt *a = attempt_of(w, m->token);
    uint64_t open = open_beside(w, m->name, m->token);
    if (l->done)
        checker_broken(w, O4, "t%llu begins n%u, which t%llu has done",
            (unsigned long long)m->token, m->name, (unsigned long long)l->done);
    if (l->late && r->doubts == 0)
        checker_broken(w, O4, "t%llu begins n%u as if nobody had done it",
            (unsigned long long)m->token, m->name);
    if (a->order != 0)
        checker_broken(
            w, O1, "t%llu begins twice", (unsigned long long)m->token);
    if (open && r->attempt == 1)
        checker_broken(w, O2, "t%llu begins n%u, and t%llu is forgotten",
            (unsigned long long)m->token, m->name, (unsigned long long)open);
    if (open && !m->once.retries)
        checker_broken(w, O1, "t%llu begins n%u, and nobody knows of t%llu",
            (unsigned long long)m->token, m->name, (unsigned long long)open);
    if (open && r->doubts == 0)
        checker_broken(w, O3,
            "t%llu begins n%u again, and is not told of t%llu",
            (unsigned long long)m->token, m->name, (unsigned long long)open);
    enter(w, m->name, m->token);
    a->fingerprint = m->once.fingerprint;
    a->doubts = r->doubts;
    w->sum.begun++;
}

void ledger_found(struct world *w, const struct message *m,
    enum once_found found, const struct work_record *r)
{
    if (w->checker.of_former)
        return;
    struct ledger *l = page_of(w, m->name);
    uint64_t open = open_beside(w, m->name, 0);
    unsigned long long token = m->token, name = m->name;
    if (l->done && found != FOUND_DONE && found != FOUND_MISMATCH)
        checker_broken(w, O4, "n%llu was done by t%llu, and is not any more",
            name, (unsigned long long)l->done);
    if (found == FOUND_DONE && (!l->done || r->result != l->result))
        checker_broken(w, O5, "n%llu: the result %llu was not the first", name,
            (unsigned long long)r->result);
    if (found == FOUND_DONE && l->done &&
        attempt_of(w, l->done)->fingerprint != m->once.fingerprint)
        checker_broken(
            w, O5, "n%llu: the result is of another fingerprint", name);
    if (open && found == FOUND_NOTHING && !m->once.retries)
        checker_broken(
            w, O2, "t%llu finds nothing begun of n%llu", token, name);
    w->sum.done += found == FOUND_DONE;
    w->sum.in_doubt += found == FOUND_DOUBT;
}

static void told_done(struct world *w, const struct message *m, bool accepted,
    const struct work_record *r)
{
    struct ledger *l = page_of(w, m->name);
    /* A failure that another attempt's late done has made a doubt, too. */
    bool elsewhere = r->token != m->token && r->state != ONCE_NONE &&
                     r->state != ONCE_FAILED;
    if (!accepted && !elsewhere)
        checker_broken(w, O4, "t%llu has done n%u, and is not believed",
            (unsigned long long)m->token, m->name);
    w->sum.late += !accepted;
    l->late += !accepted;
    if (!accepted || l->done)
        return;
    enter(w, m->name, m->token);
    attempt_of(w, m->token)->fingerprint = m->once.fingerprint;
    attempt_of(w, m->token)->excused = false;
    l->done = m->token;
    l->result = m->once.result;
}

/* The checker of this attempt has found that no earlier one did anything. */
static void told_clear(struct world *w, const struct message *m)
{
    uint64_t other = page_of(w, m->name)->last;
    for (; other; other = attempt_of(w, other)->previous)
        attempt_of(w, other)->excused |= other != m->token;
    attempt_of(w, m->token)->doubts = 0;
}

void ledger_told(struct world *w, const struct message *m, bool accepted,
    const struct work_record *r)
{
    if (w->checker.of_former)
        return;
    switch (m->once.verdict) {
    case ONCE_DONE:
        told_done(w, m, accepted, r);
        break;
    case ONCE_FAILED:
        attempt_of(w, m->token)->excused = true;
        break;
    case ONCE_DOUBT:
        if (accepted && r->state == ONCE_FAILED && r->token != m->token)
            checker_broken(w, O2, "t%llu is unsure of n%u, which is failed",
                (unsigned long long)m->token, m->name);
        if (accepted && r->state == ONCE_DOUBT && r->token == m->token) {
            enter(w, m->name, m->token);
            attempt_of(w, m->token)->excused = false;
        }
        break;
    case ONCE_CLEAR:
        if (accepted)
            told_clear(w, m);
        break;
    case ONCE_NONE:
    case ONCE_BEGUN: /* never told */
        break;
    }
}

/* Its beginning may have been taken back while the record was another
 * attempt's. Then it stays in doubt, which all who ask are told. */
void ledger_put_back(struct world *w, uint64_t token)
{
    if (w->checker.of_former)
        return;
    attempt_of(w, token)->put_back = true;
}

void ledger_unbegun(struct world *w, const struct message *m)
{
    struct attempt *a = attempt_of(w, m->token);
    if (w->checker.of_former) { /* its successor is in doubt about it */
        a->put_back = true;
        return;
    }
    if (a->handed)
        checker_broken(w, O1,
            "t%llu is taken back, though its caller was told of it",
            (unsigned long long)m->token);
    a->excused = true;
    w->sum.unbegun++;
}

/* ------------------------------------------------------ what the programs do
 */

void ledger_handed(struct world *w, const struct worker *k)
{
    struct attempt *a = attempt_of(w, k->token);
    if (a->order == 0 || a->excused)
        checker_broken(w, O1, "t%llu is told that it has begun, and has not",
            (unsigned long long)k->token);
    a->handed = true;
}

bool ledger_acted(const struct world *w, uint64_t token)
{
    return attempt_of(w, token)->acted;
}

/* The later one was not told of the earlier one. */
static void check_acts(struct world *w, uint64_t one, uint64_t other)
{
    const struct attempt *a = attempt_of(w, one), *b = attempt_of(w, other);
    const struct attempt *later_one = a->order > b->order ? a : b;
    if (b->acted && b->page == a->page && later_one->doubts == 0)
        checker_broken(w, O1, "n%u is done twice, by t%llu and t%llu",
            checker_facts(&w->checker, one)->name, (unsigned long long)other,
            (unsigned long long)one);
}

void ledger_acts(struct world *w, const struct worker *k)
{
    note(w, "c%llu.%llu does the work of n%llu t%llu", NULL, k->process->index,
        k->index, k->name, k->work.attempt);
    for (uint64_t other = 1; other < w->checker.tokens; other++)
        if (checker_facts(&w->checker, other)->name == k->name &&
            other != k->work.attempt)
            check_acts(w, k->work.attempt, other);
    attempt_of(w, k->work.attempt)->acted = true;
    w->sum.acts++;
}

bool ledger_may_act(const struct world *w, uint64_t token)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        const struct process *p = &w->process[i];
        for (unsigned j = 0; p->alive && j < w->setting.workers; j++) {
            const struct worker *k = &p->worker[j];
            bool begins =
                k->token == token && k->life.call == CALL_BEGIN &&
                (k->state == PROGRAM_WAITS || k->state == PROGRAM_HANDED);
            if (begins || k->work.attempt == token)
                return true;
        }
    }
    return false;
}

bool ledger_nothing_done(const struct world *w, unsigned name, uint64_t but_for)
{
    uint64_t other = w->checker.ledger[name].last;
    for (; other; other = attempt_of(w, other)->previous)
        if (other != but_for &&
            (ledger_acted(w, other) || ledger_may_act(w, other)))
            return false;
    return true;
}

/* ------------------------------------------------------------ now and then */

void ledger_orphans(struct world *w)
{
    for (unsigned name = 0; name < w->setting.names; name++) {
        const struct work_record *r = &w->server[0].data.record[name];
        const struct attempt *a = attempt_of(w, r->token);
        if (r->state == ONCE_BEGUN && !a->handed && !a->put_back)
            checker_begun(w, name, r->token);
    }
}
