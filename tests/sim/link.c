/* SPDX-License-Identifier: MIT */
/*
 * A model of src/net: one pipelined connection to one server. Keeps: each
 * reply goes to the slot of its command; when a connection ends, every
 * command on it is accounted for as unsure or owed; a server that does not
 * stand is not asked to vote.
 */
#include <stdlib.h>

#include "base/guard.h"
#include "sim/client.h"
#include "sim/server.h"
#include "sim/world.h"

#define DROPPED_FEW 8
#define DROPPED_PATIENCE (500 * MS)
#define RECONNECT_FIRST (10 * MS)
#define RECONNECT_MOST (500 * MS)

static struct model_server *server_of(struct world *w, const struct link *l)
{
    return &w->server[l->server];
}

static void link_rings(struct world *w, struct alarm *alarm)
{
    struct link *l = list_entry(alarm, struct link, alarm);
    if (w->now < l->process->paused_until)
        alarm_set(w, alarm, l->process->paused_until);
    else
        process_turn(w, l->process);
}

void link_start(struct world *w, struct process *p, unsigned server)
{
    struct link *l = &p->link[server];
    *l = (struct link){.process = p, .server = server};
    list_init(&l->waiting);
    list_init(&l->debts);
    list_init(&l->slots);
    backoff_init(&l->reconnect, RECONNECT_FIRST,
        earlier(RECONNECT_MOST, w->setting.timeout_ns / 2), roll(w, NEVER));
    alarm_init(w, &l->alarm, link_rings);
}

void link_push_slot(struct link *l, struct slot slot)
{
    struct slot *s = malloc(sizeof *s);
    if (!s)
        abort();
    *s = slot;
    list_init(&s->node);
    list_append(&l->slots, &s->node);
}

static struct slot *pop_slot(struct link *l)
{
    struct list *node = list_pop(&l->slots);
    return node ? list_entry(node, struct slot, node) : NULL;
}

void link_end(struct world *w, struct link *l)
{
    struct slot *slot;
    while ((slot = pop_slot(l)))
        free(slot);
    while (!list_empty(&l->debts))
        debt_free(list_entry(l->debts.next, struct debt, node));
    alarm_end(w, &l->alarm);
}

void request_fail(struct request *r, enum fault fault, bool unsure)
{
    r->state = REQUEST_FAILED;
    r->fault = fault;
    r->unsure = unsure;
    list_append(&r->worker->process->failed, &r->node);
}

void request_submit(struct world *w, struct request *r)
{
    if (r->state != REQUEST_IDLE) {
        checker_twice(w, r->worker);
        return;
    }
    r->sent_at = 0;
    r->unsure = r->cut = false;
    r->state = REQUEST_WAITING;
    list_append(&r->worker->process->link[r->server].waiting, &r->node);
}

/* ------------------------------------------------------------- giving up */

static struct slot *slot_of(struct link *l, const struct request *r)
{
    for (struct list *n = l->slots.next; n != &l->slots; n = n->next) {
        struct slot *slot = list_entry(n, struct slot, node);
        if (slot->kind == SLOT_REQUEST && slot->request == r)
            return slot;
    }
    abort(); /* what is sent has a slot */
}

static void abandon_sent(
    struct world *w, struct link *l, struct request *r, bool undo)
{
    struct slot *slot = slot_of(l, r);
    bool acquire = r->message.kind == MESSAGE_ACQUIRE;
    r->state = REQUEST_IDLE;
    if (undo && !acquire) { /* it is itself the compare-and-delete */
        struct debt *d = debt_incur(w, l, &r->message, false);
        d->sent = true;
        *slot = (struct slot){slot->node, SLOT_DEBT, NULL, d, 0, r->sent_at};
        return;
    }
    slot->kind = SLOT_DROPPED;
    slot->request = NULL;
    slot->token = acquire ? r->message.token : 0;
    l->dropped++;
    if (!undo || !guarded(GUARD_LATE_UNDO))
        return;
    struct debt *d = debt_incur(w, l, &r->message, true);
    d->exact = true; /* by order */
    slot->debt = d;
    debt_send(w, l, d);
}

bool request_abandon(struct world *w, struct request *r, bool undo)
{
    struct link *l = &r->worker->process->link[r->server];
    bool acquire = r->message.kind == MESSAGE_ACQUIRE;
    if (r->state == REQUEST_SENT) {
        abandon_sent(w, l, r, undo);
        return false;
    }
    if (r->state != REQUEST_IDLE)
        list_remove(&r->node);
    r->state = REQUEST_IDLE;
    bool never_left = r->sent_at == 0;
    if (!undo || (acquire && never_left) || !guarded(GUARD_DEBTS))
        return never_left;
    bool may_come = acquire && r->cut;
    struct debt *d = debt_incur(w, l, &r->message, may_come);
    if (may_come) {
        d->cut = true;
        d->old_client = r->cut_client;
        d->old_run_id = r->cut_run_id;
        d->until = deadline_after_ms(w->now, d->message.ttl_ms);
    }
    return never_left || !r->unsure;
}

/* ------------------------------------------------------------------- ends */

static void cut_slot(struct world *w, struct link *l, struct slot *slot)
{
    if (slot->kind == SLOT_REQUEST) {
        struct request *r = slot->request;
        r->cut = true;
        r->cut_client = l->client_id;
        r->cut_run_id = l->run_id;
        request_fail(r, FAULT_UNREACHABLE, true);
    } else if (slot->debt && guarded(GUARD_DEBTS)) {
        debt_cut_off(w, l, slot->debt);
    } else if (slot->debt) {
        slot->debt->sent = false;
        slot->debt->until = w->now;
    } else if (slot->kind == SLOT_DROPPED && slot->token != 0) {
        checker_strayed(w, l->server, slot->token);
    }
}

static void fail_waiting(struct link *l, enum fault fault)
{
    struct list *node;
    while ((node = list_pop(&l->waiting)))
        request_fail(list_entry(node, struct request, node), fault, false);
}

static void connect_failed(struct world *w, struct link *l)
{
    l->state = LINK_DOWN;
    l->not_before = w->now + backoff_next(&l->reconnect);
    fail_waiting(l, FAULT_UNREACHABLE);
}

void link_lost(struct world *w, struct link *l, uint64_t linger)
{
    bool was_up = l->state == LINK_UP;
    struct slot *slot;
    note(w, "c%llu has lost its connection to s%llu", NULL, l->process->index,
        l->server);
    while ((slot = pop_slot(l))) {
        cut_slot(w, l, slot);
        free(slot);
    }
    conn_leave(w, l->conn, linger);
    l->conn = NULL;
    l->dropped = 0;
    l->state = LINK_DOWN;
    l->not_before = w->now;
    if (!was_up)
        connect_failed(w, l);
}

/* ---------------------------------------------------------------- replies */

static void shaken(struct world *w, struct link *l, const struct message *m)
{
    l->state = LINK_UP;
    l->up_since = w->now;
    l->client_id = m->number;
    l->run_id = m->run_id;
    quarantine_seen(&l->quarantine, m->run_id, m->uptime_s,
        w->setting.max_ttl_ms, w->setting.drift_ppm, w->now);
    if (!quarantine_over(&l->quarantine, w->now))
        note(w, "c%llu sees s%llu in quarantine", NULL, l->process->index,
            l->server);
}

void link_heard(struct world *w, struct link *l, const struct message *m)
{
    struct slot *slot = pop_slot(l);
    struct slot was = *slot;
    free(slot);
    if (was.kind != SLOT_HELLO)
        backoff_reset(&l->reconnect);
    switch (was.kind) {
    case SLOT_HELLO:
        shaken(w, l, m);
        break;
    case SLOT_REQUEST:
        was.request->state = REQUEST_IDLE;
        was.request->message.number = m->number;
        worker_outcome(w, was.request, &m->outcome);
        break;
    case SLOT_DROPPED:
        l->dropped--;
        if (was.debt)
            debt_acquire_answered(w, was.debt, m);
        break;
    case SLOT_KILL:
        was.debt->killed = m->outcome.kind != OUTCOME_FAULT;
        break;
    case SLOT_DEBT:
        debt_answered(w, l, was.debt, m);
        break;
    }
}

/* ------------------------------------------------------------------ acting */

/* Does its answer count? An acquire asks for a vote, and so does an adoption:
 * a server that came back with older data may have forgotten that the token
 * was released. To extend is only to count on what one holds already. */
static bool counts(
    const struct world *w, const struct link *l, const struct message *m)
{
    if (quarantine_over(&l->quarantine, w->now))
        return true;
    if (m->kind == MESSAGE_ACQUIRE)
        return false;
    return m->kind != MESSAGE_LOOK || !guarded_here(SIM_GUARD_ADOPT);
}

static bool hangs(const struct world *w, const struct link *l)
{
    if (l->dropped < DROPPED_FEW)
        return false;
    struct slot *oldest = list_entry(l->slots.next, struct slot, node);
    return w->now >= oldest->sent_at +
                         earlier(DROPPED_PATIENCE, w->setting.timeout_ns);
}

static void send_request(struct world *w, struct link *l, struct request *r)
{
    if (!counts(w, l, &r->message)) {
        request_fail(r, FAULT_RETRY, false);
        return;
    }
    if (hangs(w, l)) {
        request_fail(r, FAULT_SILENT, false);
        return;
    }
    r->state = REQUEST_SENT;
    r->sent_at = r->message.sent_at = w->now;
    link_push_slot(l,
        (struct slot){.kind = SLOT_REQUEST, .request = r, .sent_at = w->now});
    conn_send(w, l->conn, &r->message);
}

static void dialled(struct world *w, struct link *l)
{
    struct model_server *s = server_of(w, l);
    if (s->down) {
        connect_failed(w, l);
        return;
    }
    l->state = LINK_SHAKING;
    l->conn = conn_open(w, s, l);
    l->client_id = l->run_id = 0;
    link_push_slot(l, (struct slot){.kind = SLOT_HELLO, .sent_at = w->now});
    conn_send(w, l->conn, &(struct message){.kind = MESSAGE_HELLO});
}

static uint64_t stale_at(const struct world *w, const struct link *l)
{
    if (list_empty(&l->slots))
        return NEVER;
    struct slot *oldest = list_entry(l->slots.next, struct slot, node);
    return oldest->sent_at + w->setting.patience_ns;
}

static void send_due(struct world *w, struct link *l)
{
    struct list *node = l->debts.next, *next;
    for (; node != &l->debts; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, node);
        if (!d->sent && d->next_try <= w->now)
            debt_send(w, l, d);
    }
    while ((node = list_pop(&l->waiting)))
        send_request(w, l, list_entry(node, struct request, node));
}

void link_step(struct world *w, struct link *l)
{
    uint64_t due = debts_due(w, l);
    bool wanted = !list_empty(&l->waiting) || due <= w->now;
    if (l->state >= LINK_SHAKING && w->now >= stale_at(w, l))
        link_lost(w, l, roll(w, w->setting.linger_ns));
    if (l->state == LINK_DOWN && w->now >= l->not_before && wanted) {
        l->state = LINK_DIALLING;
        l->dialled_at = w->now + travel(w, server_of(w, l));
    }
    if (l->state == LINK_DIALLING && w->now >= l->dialled_at)
        dialled(w, l);
    if (l->state == LINK_UP)
        send_due(w, l);
    uint64_t at = stale_at(w, l);
    if (l->state == LINK_DIALLING)
        at = l->dialled_at;
    else if (l->state == LINK_DOWN && !list_empty(&l->waiting))
        at = later(w->now, l->not_before);
    else if (l->state == LINK_DOWN)
        at = later(debts_due(w, l), l->not_before);
    else if (l->state == LINK_UP)
        at = earlier(at, debts_due(w, l));
    alarm_set(w, &l->alarm, at);
}
