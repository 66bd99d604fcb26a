/* SPDX-License-Identifier: MIT */
/*
 * Requests on the connection. Keeps: each reply goes to the slot of its
 * command and to nobody else.
 */
#include "net/request.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/guard.h"
#include "wire/classify.h"

/* The longest value a compare-and-delete is made for. */
#define TOKEN_ROOM 512

bool request_prepare(struct request *r, struct slice key)
{
    if (!r->spare)
        r->spare = debt_new(key, TOKEN_ROOM);
    return r->spare != NULL;
}

void request_free(struct request *r)
{
    debt_free(r->spare);
    r->spare = NULL;
}

void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure)
{
    r->state = REQUEST_FAILED;
    r->fault = fault;
    r->unsure = r->cut = unsure;
    list_append(&s->failed, &r->node);
}

void server_submit(struct server *s, struct request *r,
    const struct verb *verb, struct kept_commands *kept, uint64_t now)
{
    server_refresh(s, now);
    exchange_go_on(&r->exchange, verb, kept);
    r->sent_at = 0;
    r->unsure = false;
    r->state = REQUEST_WAITING;
    list_append(&s->waiting, &r->node);
}

/* Formats the present step of r behind what is there. false: no memory. */
static bool format(struct server *s, struct request *r, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, EXCHANGE_REPLIES))
        return false;
    s->ladder.now = now;
    unsigned due = exchange_encode(&r->exchange, &s->ladder, &c->out);
    if (!due)
        return false;
    r->slot = slots_end(&c->slots);
    for (unsigned i = 0; i < due; i++)
        slots_push(&c->slots, (struct slot){SLOT_REQUEST, r, now,
                                  i == 0 ? buf_len(&c->out) - before : 0});
    if (!r->sent_at)
        r->sent_at = now;
    r->state = REQUEST_SENT;
    return true;
}

/* Has it left so much unanswered that it seems to hang? Answers come in order,
 * so what they all wait for is the oldest. */
static bool hangs(const struct server *s, uint64_t now)
{
    const struct slots *slots = &s->conn.slots;
    if (s->conn.dropped < SERVER_DROPPED_FEW)
        return false;
    uint64_t patience = earlier(ms_to_ns(SERVER_PATIENCE_MS),
        ms_to_ns(s->endpoint.settings.timeout_ms));
    return s->conn.dropped >= SERVER_DROPPED_MOST ||
           now >= deadline_after(slots_at(slots, 0)->sent_at, patience);
}

static void fail_hanging(struct server *s, struct request *r, uint64_t now)
{
    uint64_t oldest = slots_at(&s->conn.slots, 0)->sent_at;
    text_clear(&s->why);
    text_addf(&s->why,
        "%zu earlier commands are unanswered, the oldest for %llu ms",
        s->conn.dropped,
        (unsigned long long)(deadline_left(now, oldest) / NS_PER_MS));
    request_fail(s, r, FAULT_SILENT, false);
}

void requests_format(struct server *s, uint64_t now)
{
    while (!list_empty(&s->waiting) && !s->conn.blocked && !s->ladder.alone) {
        bool full = hangs(s, now);
        if (full && socket_news(s->conn.fd) != SOCKET_QUIET)
            return; /* there are answers to be read, which may make room */
        struct request *r =
            list_entry(list_pop(&s->waiting), struct request, node);
        if (full) {
            fail_hanging(s, r, now);
        } else if (!format(s, r, now)) {
            text_clear(&s->why);
            text_add(&s->why, "no memory for a command");
            request_fail(s, r, FAULT_SYSTEM, false);
        }
    }
}

static const struct facts *facts_now(const struct server *s)
{
    return s->state == SERVER_UP ? &s->facts : &s->handshake.facts;
}

static void remember_cut(struct server *s, struct request *r)
{
    r->cut_client = facts_now(s)->client_id;
    memcpy(r->cut_run_id, facts_now(s)->run_id, sizeof r->cut_run_id);
}

/* Not a byte of it has left, and the connection had been good: it goes with
 * the next one, as if it had not been formatted. */
static void wait_again(struct server *s, struct request *r)
{
    r->state = REQUEST_WAITING;
    if (r->exchange.step == 0)
        r->sent_at = 0;
    list_append(&s->waiting, &r->node);
}

/* d may still be among the owed. */
static void owe_again(struct server *s, struct debt *d)
{
    list_remove(&d->owed);
    list_append(&s->owed, &d->owed);
}

void requests_cut_off(struct server *s, enum fault fault, uint64_t now)
{
    struct slots *slots = &s->conn.slots;
    s->owed_known = false;
    size_t sent = slots->count - conn_unsent_slots(&s->conn);
    for (size_t i = 0; i < slots->count; i++) {
        struct slot *slot = slots_at(slots, i);
        struct request *r = slot->owner;
        if (!slot->owner)
            continue;
        if (slot->kind != SLOT_REQUEST) {
            if (guarded(GUARD_DEBTS)) {
                debt_cut_off(slot->owner, facts_now(s)->client_id,
                    facts_now(s)->run_id, now);
                owe_again(s, slot->owner);
            }
        } else if (r->state == REQUEST_SENT && i >= sent &&
                   s->state == SERVER_UP) {
            wait_again(s, r);
        } else if (r->state == REQUEST_SENT) {
            remember_cut(s, r);
            request_fail(s, r, fault, i < sent);
        }
    }
}

/* ------------------------------------------------------------------ replies */

enum fault stream_fault(const struct server *s)
{
    return reader_starved(s->conn.reader) ? FAULT_SYSTEM : FAULT_NOT_REDIS;
}

static void broken(struct server *s, const char *why, uint64_t now)
{
    text_clear(&s->why);
    text_add(&s->why, why);
    server_close(s, stream_fault(s), now);
}

static void shaken(
    struct server *s, const struct reply *reply, uint64_t now)
{
    enum fault fault = FAULT_NONE;
    switch (handshake_reply(&s->handshake, reply, &fault)) {
    case HANDSHAKE_WAIT:
        return;
    case HANDSHAKE_DONE:
        if (s->who.needs_info && s->handshake.facts.loading) {
            /* What INFO says of persistence then is not so afterwards. */
            text_clear(&s->why);
            text_add(&s->why, "LOADING the server is reading its data in");
            server_close(s, FAULT_RETRY, now);
            return;
        }
        s->state = SERVER_UP;
        s->known = true;
        s->facts = s->handshake.facts;
        s->ladder.doubted = s->facts.no_scripts || s->ladder.stamps;
        return;
    case HANDSHAKE_FAILED:
        text_clear(&s->why);
        text_add_foreign(&s->why, reply->bytes);
        server_close(s, fault, now);
    }
}

/* A transaction that cannot be ended would take in all that follows. */
static void end_open(struct server *s)
{
    text_clear(&s->why);
    text_add(&s->why, "DISCARD is not allowed here");
    s->ended = FAULT_DENIED;
}

static void end_stuck(struct server *s, const struct exchange *x)
{
    if (x->stuck)
        end_open(s);
}

/* True when the reply completed r. */
static bool replied(struct server *s, struct request *r,
    const struct reply *reply, struct completion *c, uint64_t now)
{
    switch (exchange_reply(&r->exchange, reply)) {
    case EXCHANGE_WAIT:
        return false;
    case EXCHANGE_AGAIN:
        if (!exchange_may_go(&r->exchange, &s->ladder)) {
            r->state = REQUEST_WAITING;
            list_append(&s->waiting, &r->node);
        } else if (!format(s, r, now)) {
            text_clear(&s->why);
            text_add(&s->why, "no memory for a command");
            if (exchange_leave(&r->exchange))
                request_discard(s, now);
            request_fail(s, r, FAULT_SYSTEM, false);
        }
        return false;
    case EXCHANGE_DONE:
        break;
    }
    end_stuck(s, &r->exchange);
    r->state = REQUEST_IDLE;
    c->request = r;
    c->outcome = r->exchange.outcome;
    c->outcome.sent_at = r->sent_at;
    r->unsure = c->outcome.kind == OUTCOME_FAULT && c->outcome.unsure;
    if (c->outcome.kind == OUTCOME_FAULT &&
        c->outcome.fault == FAULT_ELSEWHERE)
        s->elsewhere = true;
    r->cut = r->unsure && c->outcome.fault == FAULT_NOT_REDIS;
    if (r->cut) { /* what it said made no sense: nor will the rest */
        remember_cut(s, r);
        text_clear(&s->why);
        text_add_foreign(&s->why, c->outcome.text);
        s->ended = FAULT_NOT_REDIS;
    }
    return true;
}

/* A reply to a debt's commands. */
static void paid_in(struct server *s, struct debt *d,
    const struct reply *reply, uint64_t now)
{
    enum debt_answer answer =
        debt_answered(d, reply, &s->conn, &s->ladder, now);
    if (answer == DEBT_WAITS)
        return;
    if (exchange_leave(&d->exchange))
        request_discard(s, now);
    end_stuck(s, &d->exchange);
    if (d->exchange.outcome.fault == FAULT_ELSEWHERE)
        s->elsewhere = true;
    s->cleaned += d->exchange.outcome.kind == OUTCOME_MINE;
    if (answer == DEBT_PAID)
        debt_free(d);
    else
        owe_again(s, d);
}

/* One reply to whom it belongs; true when a request was completed by it. */
static bool dispatch(struct server *s, const struct reply *reply,
    struct completion *c, uint64_t now)
{
    struct slot slot = conn_pop(&s->conn);
    s->owed_known = false; /* it may be of a debt's acquire */
    s->heard_at = s->ladder.now = now;
    /* Timestamps are made of the two clocks' difference: now was read before
     * this reply came, and how long before nobody knows. */
    if (s->ladder.stamps || ladder_weak(&s->ladder))
        s->ladder.now = later(now, clock_now());
    if (slot.kind != SLOT_HANDSHAKE) {
        s->good = true;
        backoff_reset(&s->reconnect);
    }
    switch (slot.kind) {
    case SLOT_HANDSHAKE:
        shaken(s, reply, now);
        return false;
    case SLOT_REQUEST:
        return replied(s, slot.owner, reply, c, now);
    case SLOT_DROPPED:
        s->conn.dropped--;
        if (slot.owner &&
            (reply->kind == REPLY_NIL || reply->kind == REPLY_ERROR))
            debt_acquire_refused(slot.owner, now);
        else if (slot.owner)
            debt_acquire_answered(slot.owner, now);
        return false;
    case SLOT_SPILT:
        s->conn.dropped--;
        return false;
    case SLOT_LEFT:
        s->conn.dropped--;
        if (reply->kind == REPLY_ERROR && !error_leaves(reply->bytes))
            end_open(s);
        return false;
    case SLOT_KILL:
        debt_kill_answered(slot.owner, reply);
        return false;
    case SLOT_DEBT:
        paid_in(s, slot.owner, reply, now);
        return false;
    case SLOT_HOLE:
        break;
    }
    return false;
}

/* Of what form is the reply that comes next, and who gathers it? */
static void expect_reply(struct server *s)
{
    const struct slots *slots = &s->conn.slots;
    const struct slot *slot = slots->count ? slots_at(slots, 0) : NULL;
    struct leaves *leaves = NULL;
    bool loose = slot && slot->kind == SLOT_SPILT;
    if (slot && slot->kind == SLOT_REQUEST) {
        const struct request *r = slot->owner;
        loose = r->exchange.verb->kind == VERB_ASK;
        leaves = loose ? r->exchange.verb->leaves : NULL;
    }
    reader_expect(s->conn.reader, loose, leaves);
}

bool server_next(struct server *s, struct completion *c, uint64_t now)
{
    for (;;) {
        struct list *node = list_pop(&s->failed);
        if (node) {
            struct request *r = list_entry(node, struct request, node);
            r->state = REQUEST_IDLE;
            *c = (struct completion){r,
                {.kind = OUTCOME_FAULT, .fault = r->fault, .unsure = r->unsure,
                    .sent_at = r->sent_at, .left_ms = LEFT_UNKNOWN,
                    .text = {s->why.data, s->why.len}}};
            return true;
        }
        if (s->state < SERVER_SHAKING)
            return false;
        if (s->ended == FAULT_NOT_REDIS) { /* nor is the rest to be believed */
            server_close(s, s->ended, now);
            continue;
        }
        const struct reply *reply = NULL;
        expect_reply(s);
        int got = reader_next(s->conn.reader, &reply);
        if (got < 0)
            broken(s, reader_error(s->conn.reader), now);
        else if (got == 0 && s->ended)
            server_close(s, s->ended, now);
        else if (got == 0)
            return false;
        else if (s->state == SERVER_SHAKING && handshake_is_farewell(reply))
            shaken(s, reply, now); /* it may come before we have said a word */
        else if (s->conn.slots.count == conn_unsent_slots(&s->conn))
            broken(s, "an answer to nothing that was asked", now);
        else if (dispatch(s, reply, c, now))
            return true;
    }
}
