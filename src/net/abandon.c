/* SPDX-License-Identifier: MIT */
/*
 * Giving up. Keeps: whatever a request may have done, or may still do, at the
 * server although nobody wants it is owed from then on; and a connection is
 * never left with a transaction open.
 */
#include "net/request.h"

#include "base/deadline.h"
#include "base/guard.h"

void request_discard(struct server *s, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, 1) || !exchange_discard(&c->out)) {
        s->ended = FAULT_SYSTEM;
        return;
    }
    slots_push(&c->slots,
        (struct slot){SLOT_LEFT, NULL, now, buf_len(&c->out) - before});
    c->dropped++;
}

static void take_on(struct server *s, struct debt *d, struct slice token,
    uint32_t ttl_ms, bool may_come, uint64_t now)
{
    debt_incur(d, token, ttl_ms, may_come, now);
    list_append(&s->debts, &d->node);
    list_append(&s->owed, &d->owed);
    s->owed_known = false;
}

static void owe(struct server *s, struct debt *d, const struct request *r,
    bool may_come, uint64_t now)
{
    const struct verb *verb = r->exchange.verb;
    exchange_inherit(&d->exchange, &r->exchange);
    take_on(s, d, verb->token, verb->ttl_ms, may_come, now);
}

static struct debt *take_spare(struct request *r)
{
    struct debt *d = r->spare;
    r->spare = NULL;
    return d;
}

/* Drops the listeners of r's slots; the one at place of those that are left
 * belongs to a debt from now on, if there is one. */
static void drop_slots(struct server *s, struct request *r, size_t index,
    struct debt *d, size_t place, enum slot_kind kind)
{
    bool any = r->exchange.verb->kind == VERB_ASK;
    enum slot_kind rest = any ? SLOT_SPILT : SLOT_DROPPED;
    for (size_t i = index; i < s->conn.slots.count; i++) {
        struct slot *slot = slots_at(&s->conn.slots, i);
        if (slot->owner != r || slot->kind != SLOT_REQUEST)
            return;
        bool owned = d && i == index + place;
        slot->kind = owned ? kind : rest;
        slot->owner = owned ? d : NULL;
        s->conn.dropped += slot->kind == rest;
    }
}

/* An acquire on its way: its undoing goes behind it on this connection. */
static void undo_acquire(struct server *s, struct request *r, size_t index,
    struct debt *d, bool opened, uint64_t now)
{
    bool answered = slots_at(&s->conn.slots, index)->bytes == 0;
    int place = exchange_writes(&r->exchange, answered);
    owe(s, d, r, place >= 0, now);
    d->exact = true;
    drop_slots(s, r, index, place >= 0 ? d : NULL, (size_t)place,
        SLOT_DROPPED);
    if (opened) /* else the undoing would be a part of it */
        request_discard(s, now);
    if (!s->ladder.alone)
        debt_send(d, &s->conn, &s->ladder, NULL, now);
}

/* Not a byte of r's present step has left. */
static void withdraw(struct server *s, struct request *r, uint64_t number,
    bool opened, bool undo, uint64_t now)
{
    conn_withdraw(&s->conn, number, r->exchange.due);
    if (opened && exchange_opened(&r->exchange))
        request_discard(s, now);
    if (undo && r->exchange.verb->kind == VERB_RELEASE && r->spare)
        owe(s, take_spare(r), r, false, now);
}

static bool abandon_sent(
    struct server *s, struct request *r, bool undo, uint64_t now)
{
    struct slots *slots = &s->conn.slots;
    /* The first of two replies may have come, and taken its slot away. */
    uint64_t number = later(r->slot, slots->popped);
    size_t index = (size_t)(number - slots->popped);
    bool opened = exchange_leave(&r->exchange);
    r->state = REQUEST_IDLE;
    if (number >= s->conn.unsent) {
        withdraw(s, r, number, opened, undo, now);
        return true;
    }
    undo = undo && !r->exchange.no_undo && guarded(GUARD_LATE_UNDO);
    struct debt *d = undo ? take_spare(r) : NULL;
    if (d && r->exchange.verb->kind == VERB_ACQUIRE) {
        undo_acquire(s, r, index, d, opened, now);
        return false;
    }
    if (d)
        owe(s, d, r, false, now);
    if (d && exchange_compares(&r->exchange)) {
        /* The release on its way is itself the compare-and-delete. */
        d->state = DEBT_SENT;
        list_remove(&d->owed);
        exchange_hand_over(&r->exchange, &d->exchange, &d->verb);
        drop_slots(s, r, index, d, 0, SLOT_DEBT);
    } else {
        drop_slots(s, r, index, NULL, 0, SLOT_DROPPED);
    }
    if (opened)
        request_discard(s, now);
    return false;
}

/* r has been answered, or has failed. */
static bool undo_ended(struct server *s, struct request *r, uint64_t now)
{
    bool never_left = r->sent_at == 0;
    bool acquire = r->exchange.verb->kind == VERB_ACQUIRE;
    if (r->spare && !(acquire && never_left) && !r->exchange.no_undo &&
        guarded(GUARD_DEBTS)) {
        struct debt *d = take_spare(r);
        owe(s, d, r, acquire && r->cut, now);
        if (d->may_come) {
            d->exact = true;
            debt_cut_off(d, r->cut_client, r->cut_run_id, now);
        }
    }
    return never_left || !r->unsure;
}

bool server_abandon(
    struct server *s, struct request *r, bool undo, uint64_t now)
{
    if (r->state == REQUEST_SENT)
        return abandon_sent(s, r, undo, now);
    bool waits = r->state == REQUEST_WAITING;
    if (r->state != REQUEST_IDLE)
        list_remove(&r->node);
    r->state = REQUEST_IDLE;
    /* Steps of an acquire follow one another only while none has written. */
    if (waits && r->exchange.verb->kind == VERB_ACQUIRE)
        return true;
    return undo ? undo_ended(s, r, now) : r->sent_at == 0;
}

void server_owe(struct server *s, struct debt *debt, struct slice token,
    uint32_t ttl_ms, uint64_t now)
{
    take_on(s, debt, token, ttl_ms, false, now);
}

bool server_forgive(struct server *s, struct slice key, struct slice token)
{
    struct list *node = s->debts.next, *next;
    bool none_left = true;
    s->owed_known = false;
    for (; node != &s->debts; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, node);
        if (!slice_equal(d->verb.key, key) ||
            !slice_equal(d->verb.token, token))
            continue;
        if (d->state == DEBT_OWED && d->until != NEVER)
            debt_free(d);
        else /* it is on its way, or its acquire has a slot still */
            none_left = false;
    }
    return none_left;
}
