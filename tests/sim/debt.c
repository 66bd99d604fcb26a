/* SPDX-License-Identifier: MIT */
/*
 * A model of the debts of src/net. Keeps: a debt ends as paid only by a
 * compare-and-delete that came after everything that could still set the key,
 * or by time; the checker holds it to that.
 */
#include <stdlib.h>

#include "base/guard.h"
#include "sim/client.h"
#include "sim/world.h"

#define FIRST_INTERVAL (20 * MS)
#define LAST_INTERVAL NS_PER_S

struct debt *debt_incur(
    struct world *w, struct link *l, const struct message *of, bool may_come)
{
    struct debt *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    list_init(&d->node);
    list_append(&l->debts, &d->node);
    d->message = *of;
    d->message.kind = MESSAGE_RELEASE;
    d->may_come = may_come;
    d->next_try = w->now;
    d->interval = FIRST_INTERVAL;
    d->until = may_come ? NEVER : deadline_after_ms(w->now, d->message.ttl_ms);
    note(w, "c%llu owes s%llu t%llu", may_come ? "(it may come)" : NULL,
        l->process->index, l->server, of->token);
    return d;
}

void debt_free(struct debt *d)
{
    list_remove(&d->node);
    free(d);
}

static bool wants_kill(const struct link *l, const struct debt *d)
{
    return d->may_come && !d->exact && !d->killed && d->old_client != 0 &&
           l->run_id == d->old_run_id && guarded(GUARD_KILL);
}

void debt_send(struct world *w, struct link *l, struct debt *d)
{
    if (wants_kill(l, d)) {
        struct message kill = {.kind = MESSAGE_KILL, .number = d->old_client};
        link_push_slot(
            l, (struct slot){.kind = SLOT_KILL, .debt = d, .sent_at = w->now});
        conn_send(w, l->conn, &kill);
    }
    d->sent = true;
    d->message.sent_at = w->now;
    link_push_slot(
        l, (struct slot){.kind = SLOT_DEBT, .debt = d, .sent_at = w->now});
    conn_send(w, l->conn, &d->message);
}

void debt_acquire_answered(
    struct world *w, struct debt *d, const struct message *reply)
{
    d->may_come = false;
    if (reply->outcome.kind != OUTCOME_GRANTED)
        d->until = w->now;
    else if (d->until == NEVER)
        d->until = deadline_after_ms(w->now, d->message.ttl_ms);
}

static void try_later(struct world *w, struct debt *d)
{
    d->next_try = w->now + d->interval;
    d->interval = earlier(2 * d->interval, LAST_INTERVAL);
}

bool debt_answered(
    struct world *w, struct link *l, struct debt *d, const struct message *m)
{
    enum outcome_kind kind = m->outcome.kind;
    bool after_all = !d->may_come || d->exact || d->killed;
    d->sent = false;
    if (kind != OUTCOME_FAULT && (kind == OUTCOME_MINE || after_all)) {
        checker_settled(w, l->server, d->message.token);
        note(w, "c%llu has paid s%llu t%llu", NULL, l->process->index,
            l->server, d->message.token);
        debt_free(d);
        return true;
    }
    if (kind == OUTCOME_FAULT && d->until == NEVER)
        d->until = deadline_after_ms(w->now, d->message.ttl_ms);
    try_later(w, d);
    return false;
}

void debt_cut_off(struct world *w, struct link *l, struct debt *d)
{
    if (!d->cut)
        d->next_try = w->now;
    else if (d->sent)
        try_later(w, d);
    d->cut = true;
    d->sent = false;
    if (d->until == NEVER)
        d->until = deadline_after_ms(w->now, d->message.ttl_ms);
    if (!d->exact)
        return;
    d->exact = false;
    d->old_client = l->client_id;
    d->old_run_id = l->run_id;
}

uint64_t debts_due(struct world *w, struct link *l)
{
    uint64_t at = NEVER;
    struct list *node = l->debts.next, *next;
    for (; node != &l->debts; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, node);
        if (d->sent)
            continue;
        if (w->now >= d->until) {
            checker_lapsed(w, l->server, d->message.token);
            debt_free(d);
        } else {
            at = earlier(at, d->next_try);
        }
    }
    return at;
}

bool link_forgive(struct link *l, uint64_t token)
{
    bool none_left = true;
    struct list *node = l->debts.next, *next;
    for (; node != &l->debts; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, node);
        if (d->message.token != token)
            continue;
        if (!d->sent && d->until != NEVER)
            debt_free(d);
        else
            none_left = false;
    }
    return none_left;
}
