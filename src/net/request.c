/* SPDX-License-Identifier: MIT */
/* Formats requests on the connection and processes their replies. */
#include "net/request.h"

#include "base/clock.h"
#include "model/companion.h"
#include "base/deadline.h"
#include "core/confirm.h"
#include "core/lineage.h"
#include "core/weigh.h"
#include "model/token.h"
#include "net/cancel.h"
#include "net/connect.h"
#include "net/quote.h"
#include "net/spare.h"
#include "wire/classify.h"
#include "wire/command.h"
#include "wire/marker.h"
#include "wire/strategies.h"

void request_free(struct request *r)
{
    spare_free(r);
    exchange_free(&r->exchange);
    if (r->acquire_cleaner)
        r->acquire_cleaner->link = NULL;
    r->acquire_cleaner = NULL;
}

void request_submit(
    struct request *r, const struct verb *verb, struct command_cache *cache)
{
    struct server *s = r->server;
    if (verb_acquires(verb->kind) &&
        r->acquire_cleaner) { /* of an earlier token */
        r->acquire_cleaner->link = NULL;
        r->acquire_cleaner = NULL;
    }
    exchange_restart(&r->exchange, verb, cache);
    r->sent_at = 0;
    r->unsure = false;
    if (!verb->earlier_token_possible)
        r->given_up = s->given_up;
    r->state = REQUEST_QUEUED;
    list_append(&s->queued, &r->node);
    if (verb->connect_by)
        s->connect_by = earlier(s->connect_by, verb->connect_by);
}

void requests_refuse(
    struct server *s, enum fault fault, const struct text *words)
{
    struct list *node = s->queued.next, *next;
    for (; node != &s->queued; node = next) {
        next = node->next;
        struct request *r = list_entry(node, struct request, node);
        const struct verb_traits *verb = &verb_traits[r->exchange.verb->kind];
        if (!verb->may_grant || r->sent_at)
            continue;
        s->why = *words;
        list_remove(&r->node);
        request_fail(s, r, fault, false);
    }
}

/* r's command was appended: the number of its first slot. */
static void note_sent(
    struct server *s, struct request *r, uint64_t slot, uint64_t now)
{
    r->slot = slot;
    if (!r->sent_at)
        r->sent_at = now;
    r->state = REQUEST_SENT;
    if (s->replica_wait.in_use)
        replica_wait_note(&s->replica_wait, r->exchange.verb, now);
}

/* Has it to wait until the Sentinels name this server again? */
static bool must_await_sentinels(
    const struct server *s, const struct request *r, uint64_t now)
{
    return s->confirmed_at && !confirm_covers(*s->confirmed_at, now) &&
           weigh_needs_confirmation(r->exchange.verb->kind);
}

static void fail_without_memory(struct server *s, struct request *r)
{
    text_set(&s->why, "out of memory: cannot store the command");
    request_fail(s, r, FAULT_SYSTEM, false);
}

/* Takes the requests that can be sent in one command with all[0], which are
 * next in the queue; none is written. Returns how many all are. */
static unsigned take_followers(
    struct server *s, struct request **all, uint64_t now)
{
    struct buf *out = &s->conn.out;
    size_t before = buf_len(out);
    unsigned count = 1;
    bool joins = exchange_may_join(&all[0]->exchange);
    while (joins && count < COMMAND_NAMES && !list_empty(&s->queued)) {
        struct request *r = list_entry(s->queued.next, struct request, node);
        if (!exchange_follows(&r->exchange, &all[count - 1]->exchange) ||
            must_await_sentinels(s, r, now) ||
            exchange_encode(&r->exchange, &s->dialect, out) == 0)
            break;
        buf_cut(out, before, buf_len(out) - before);
        if (!exchange_may_join(&r->exchange))
            break;
        list_remove(&r->node);
        all[count++] = r;
    }
    return count;
}

/* r's command, from `before` on, acquires one of several names: those behind it
 * that want the next names are sent with it, as one command with one reply and
 * a slot for each. No single one can be taken back: see cancel_formatted(). */
static bool format_joined(
    struct server *s, struct request *r, size_t before, uint64_t now)
{
    struct conn *c = &s->conn;
    struct request *all[COMMAND_NAMES] = {r};
    struct exchange *of[COMMAND_NAMES];
    buf_cut(&c->out, before, buf_len(&c->out) - before);
    unsigned count = take_followers(s, all, now);
    for (unsigned i = 0; i < count; i++)
        of[i] = &all[i]->exchange;
    if (!slots_reserve(&c->slots, count) ||
        !exchange_encode_joined(of, count, &c->out)) {
        for (unsigned i = 1; i < count; i++)
            fail_without_memory(s, all[i]);
        return false;
    }
    for (unsigned i = 0; i < count; i++)
        note_sent(s, all[i],
            slots_push(&c->slots, SLOT_REQUEST, all[i], now,
                i ? 0 : buf_len(&c->out) - before),
            now);
    slots_at(&c->slots, c->slots.count - count)->sharing = count - 1;
    return true;
}

/* Appends the commands of r's current step. False: out of memory. */
static bool format(struct server *s, struct request *r, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, EXCHANGE_REPLIES))
        return false;
    s->dialect.now = now;
    unsigned due = exchange_encode(&r->exchange, &s->dialect, &c->out);
    if (!due)
        return false;
    if (r->exchange.strategy->counts_names)
        return format_joined(s, r, before, now);
    uint64_t number =
        slots_push(&c->slots, SLOT_REQUEST, r, now, buf_len(&c->out) - before);
    for (unsigned i = 1; i < due; i++)
        slots_push(&c->slots, SLOT_REQUEST, r, now, 0);
    note_sent(s, r, number, now);
    return true;
}

/* Does the server seem to hang? Replies come in order, so the oldest unanswered
 * command is the one that all the others wait for. */
static bool hangs(const struct server *s, uint64_t now)
{
    const struct slots *slots = &s->conn.slots;
    if (s->conn.dropped < SERVER_DROPPED_FEW)
        return false;
    uint64_t patience = earlier(
        ms_to_ns(SERVER_PATIENCE_MS), ms_to_ns(s->to.settings->timeout_ms));
    return s->conn.dropped >= SERVER_DROPPED_MAX ||
           now >= deadline_after(slots_at(slots, 0)->sent_at, patience);
}

static void fail_hanging(struct server *s, struct request *r, uint64_t now)
{
    uint64_t oldest = slots_at(&s->conn.slots, 0)->sent_at;
    text_clear(&s->why);
    text_addf(&s->why, "%zu earlier %s unanswered, the oldest for ",
        s->conn.dropped, s->conn.dropped == 1 ? "command is" : "commands are");
    text_add_duration(&s->why, elapsed(oldest, now) / NS_PER_MS, false);
    request_fail(s, r, FAULT_TIMEOUT, false);
}

static void fail_apart(struct server *s, struct request *r)
{
    text_set(&s->why,
        "in a Redis Cluster the keys of a lock must have the same "
        "slot, which a name with '}' and no hash tag prevents");
    request_fail(s, r, FAULT_SLOTS, false);
}

/* The first record is begun over a connection whose handshake did not ask how
 * safe it would be: asks now, in front of that. */
static void ask_fsync(struct server *s, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (s->state == SERVER_UP && s->handshake_terms.asks_fsync &&
        !s->handshake.asks_fsync && slots_reserve(&c->slots, 1) &&
        handshake_ask_fsync(&s->handshake, &c->out))
        slots_push(&c->slots, SLOT_FSYNC, NULL, now, buf_len(&c->out) - before);
}

/* Asks whether the server is alive, and still the same primary. False: no
 * memory. */
static bool ask_alive(struct server *s, uint64_t now)
{
    const struct slice info[] = {slice_of("INFO"), slice_of("replication")};
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (s->asks_alive)
        return true;
    s->asks_alive =
        slots_reserve(&c->slots, 1) && command_append(&c->out, 2, info);
    s->sign_at = lineage_alive_at(s->heard_at, now);
    if (s->asks_alive)
        slots_push(&c->slots, SLOT_ALIVE, NULL, now, buf_len(&c->out) - before);
    return s->asks_alive;
}

/* May lock commands be formatted now? */
static bool may_format(struct server *s)
{
    return !list_empty(&s->queued) && !s->conn.blocked &&
           !s->dialect.in_transaction && s->replica_wait.under_way == 0;
}

void server_write_marker(struct server *s, int64_t age_ms, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (s->state == SERVER_UP && slots_reserve(&c->slots, 1) &&
        marker_append(&c->out, s->age.marker, s->facts.replid, age_ms))
        slots_push(
            &c->slots, SLOT_MARKER, NULL, now, buf_len(&c->out) - before);
}

/* Likewise, where some may have to wait. */
static struct request *take_confirmed(struct server *s, uint64_t now)
{
    struct list *node = s->queued.next;
    for (; node != &s->queued; node = node->next) {
        struct request *r = list_entry(node, struct request, node);
        if (must_await_sentinels(s, r, now))
            continue;
        list_remove(node);
        return r;
    }
    return NULL;
}

/* The first that may be sent, of those that wait; NULL: there is none. */
static inline struct request *take_next(struct server *s, uint64_t now)
{
    return s->confirmed_at
               ? take_confirmed(s, now)
               : list_entry(list_pop(&s->queued), struct request, node);
}

void requests_unconfirmed(struct server *s, enum fault fault, uint64_t now)
{
    struct list *node = s->queued.next, *next;
    for (; node != &s->queued; node = next) {
        next = node->next;
        struct request *r = list_entry(node, struct request, node);
        if (!must_await_sentinels(s, r, now))
            continue;
        list_remove(&r->node);
        request_fail(s, r, fault, r->unsure);
    }
    s->awaits_sentinels = false;
}

static void format_waiting(struct server *s, uint64_t now)
{
    bool guards = s->handshake_terms.age && may_format(s);
    bool asked =
        !guards || !lineage_wants_sign(s->alive_at, now) || ask_alive(s, now);
    s->awaits_sign = guards && asked && !lineage_is_current(s->alive_at, now);
    if (s->awaits_sign)
        return;
    if (may_format(s))
        ask_fsync(s, now);
    s->awaits_sentinels = false;
    while (may_format(s)) {
        bool full = hangs(s, now);
        if (full && transport_news(&s->conn.transport) != TRANSPORT_QUIET)
            return; /* answers can be read, which may make room */
        struct request *r = take_next(s, now);
        s->awaits_sentinels = !r;
        if (!r)
            return;
        if (!asked) {
            fail_without_memory(s, r);
        } else if (full) {
            fail_hanging(s, r, now);
        } else if (verb_too_late(r->exchange.verb, now)) {
            request_fail_late(s, r);
        } else if (s->facts.cluster && key_is_apart(r->exchange.verb->key)) {
            fail_apart(s, r);
        } else if (!format(s, r, now)) {
            fail_without_memory(s, r);
        }
    }
}

void requests_format(struct server *s, uint64_t now)
{
    format_waiting(s, now);
    if (s->replica_wait.due && !s->dialect.in_transaction &&
        !replica_wait_ask(&s->replica_wait, &s->conn, now))
        s->end_fault = FAULT_SYSTEM;
}

/* After an input to its cleanup: frees the cleaner or puts it into the list of
 * those that are idle, where it may already be. */
static void sort_cleaner(struct server *s, struct cleaner *k)
{
    s->cleanup_times_known = false;
    if (cleanup_over(&k->cleanup)) {
        cleanup_finished(s, k);
    } else if (k->cleanup.state == CLEANUP_IDLE) {
        list_remove(&k->idle_node);
        list_append(&s->idle_cleaners, &k->idle_node);
    }
}

/* Whether replicas have what the requests wrote that are held is not known.
 * answered: WAIT was refused, so it will never be known. */
static void fail_awaiting_replicas(
    struct server *s, enum fault fault, bool answered)
{
    struct list *node;
    while ((node = list_pop(&s->replica_wait.awaiting))) {
        struct request *r = list_entry(node, struct request, node);
        request_fail(s, r, fault, true);
        r->answer_lost = false; /* its answer has come */
        r->applied = answered;
    }
}

void requests_cut_off(struct server *s, enum fault fault, uint64_t now)
{
    struct slots *slots = &s->conn.slots;
    s->cleanup_times_known = false;
    size_t sent = slots->count - conn_unsent_slots(&s->conn);
    for (size_t i = 0; i < slots->count; i++) {
        struct slot *slot = slots_at(slots, i);
        struct request *r = slot->owner;
        if (!slot->owner)
            continue;
        if (slot->kind != SLOT_REQUEST) {
            struct cleaner *k = slot->owner;
            cleanup_connection_lost(&k->cleanup, facts_now(s)->client_id,
                facts_now(s)->run_id, now);
            sort_cleaner(s, k);
        } else if (r->state == REQUEST_SENT && i >= sent &&
                   s->state == SERVER_UP) {
            request_wait_again(s, r); /* on the next connection */
        } else if (r->state == REQUEST_SENT) {
            if (i < sent)
                request_lost(s, r, facts_now(s), now);
            request_fail(s, r, fault, i < sent);
        }
    }
    replica_wait_cut_off(&s->replica_wait);
    fail_awaiting_replicas(s, fault, false);
}

/* ------------------------------------------------------------------ replies */

/* DISCARD was refused: close the connection, because all commands would become
 * part of the open transaction. */
static void end_open_transaction(struct server *s)
{
    text_set(&s->why, "DISCARD is not allowed here");
    s->end_fault = FAULT_NO_PERMISSION;
}

/* The reply was invalid, so those that follow cannot be trusted. */
static void end_out_of_step(struct server *s, struct slice why)
{
    text_clear(&s->why);
    text_add_foreign(&s->why, why);
    s->end_fault = FAULT_NOT_REDIS;
}

static void end_stuck_transaction(struct server *s, const struct exchange *x)
{
    if (x->phase == EXCHANGE_PHASE_STUCK)
        end_open_transaction(s);
}

/* Ends r between two of its steps. */
static void give_up_request(struct server *s, struct request *r, uint64_t now)
{
    if (exchange_cancel(&r->exchange))
        request_discard(s, now);
}

/* r has its outcome. Inlined, because each reply passes here. */
static inline __attribute__((always_inline)) void complete(
    struct server *s, struct request *r, struct completion *c, uint64_t now)
{
    r->state = REQUEST_IDLE;
    c->request = r;
    c->outcome = r->exchange.outcome;
    c->outcome.sent_at = r->sent_at;
    c->outcome.connection = s->connections;
    if (c->outcome.kind == OUTCOME_BUSY &&
        r->exchange.verb->earlier_token_possible)
        c->outcome.earlier_token_may_remain = server_may_have_earlier_token(r);
    bool fails = c->outcome.kind == OUTCOME_FAULT;
    r->unsure = outcome_wrote(&c->outcome) || (fails && c->outcome.unsure);
    if (r->acquire_cleaner && verb_ends_use(r->exchange.verb))
        request_released(s, r, now);
    if (c->outcome.kind == OUTCOME_FAULT &&
        fault_wants_reconnect(c->outcome.fault))
        s->must_reconnect = true;
    r->answer_lost = fails && r->unsure && c->outcome.fault == FAULT_NOT_REDIS;
    if (r->answer_lost) {
        request_lost(s, r, facts_now(s), now);
        end_out_of_step(s, c->outcome.text);
    }
    quote_outcome(s, &c->outcome);
}

bool requests_ready(struct server *s, struct completion *c, uint64_t now)
{
    struct list *node = list_pop(&s->replica_wait.ready);
    if (node)
        complete(s, list_entry(node, struct request, node), c, now);
    return node;
}

static void await_replicas(struct server *s, struct request *r)
{
    r->state = REQUEST_AWAITS_REPLICAS;
    list_append(&s->replica_wait.awaiting, &r->node);
}

static void replica_wait_replied(struct server *s, const struct reply *reply)
{
    struct copies copies;
    struct list *node;
    if (!replica_wait_answered(&s->replica_wait, reply, &copies)) {
        bool refused = reply->kind == REPLY_ERROR;
        enum fault fault =
            refused ? classify_error(reply->bytes) : FAULT_NOT_REDIS;
        text_clear(&s->why);
        text_add(&s->why, s->replica_wait.aof ? "WAITAOF" : "WAIT");
        text_add(&s->why,
            refused ? " was refused: " : " was not answered with a number");
        if (refused)
            quote_add(s, reply->bytes);
        s->must_reconnect = s->must_reconnect || fault_wants_reconnect(fault);
        /* Of a former primary it is unknown what its successor has. */
        fail_awaiting_replicas(
            s, fault, refused && !fault_wants_reconnect(fault));
        if (!refused)
            s->end_fault = FAULT_NOT_REDIS; /* what follows cannot be trusted */
        return;
    }
    while ((node = list_pop(&s->replica_wait.awaiting))) {
        struct request *r = list_entry(node, struct request, node);
        r->exchange.outcome.copies = copies;
        list_append(&s->replica_wait.ready, &r->node);
    }
}

/* If the verb succeeded, did it write anything that a WAIT could confirm? If
 * not, it does not count (FAULT_COPIES). An extension writes nothing where the
 * key never expires; and without a script, where the lease is longer than asked
 * for.
 */
static bool wrote(const struct exchange *x)
{
    int64_t left_ms = x->outcome.left_ms;
    return left_ms != LEFT_FOREVER &&
           (exchange_always_writes(x) || left_ms <= (int64_t)x->verb->ttl_ms);
}

/* True when the reply completed r. */
static bool replied(struct server *s, struct request *r,
    const struct reply *reply, struct completion *c, uint64_t now)
{
    switch (exchange_reply(&r->exchange, reply)) {
    case EXCHANGE_WAIT:
        return false;
    case EXCHANGE_AGAIN:
        if (!exchange_may_send(&r->exchange, &s->dialect)) {
            r->state = REQUEST_QUEUED;
            list_append(&s->queued, &r->node);
        } else if (verb_too_late(r->exchange.verb, now)) {
            give_up_request(s, r, now);
            request_fail_late(s, r);
        } else if (!format(s, r, now)) {
            give_up_request(s, r, now);
            fail_without_memory(s, r);
        }
        return false;
    case EXCHANGE_DONE:
        break;
    }
    end_stuck_transaction(s, &r->exchange);
    if (s->replica_wait.in_use && wrote(&r->exchange) &&
        replica_wait_is_needed(r->exchange.verb, &r->exchange.outcome)) {
        await_replicas(s, r);
        return false;
    }
    complete(s, r, c, now);
    return true;
}

/* The reply to an acquire that was cancelled. */
static void acquire_answered(struct server *s, struct cleaner *k,
    const struct reply *reply, uint64_t now)
{
    bool not_applied = reply->kind == REPLY_NIL ||
                       (reply->kind == REPLY_ERROR &&
                           !fault_leaves_doubt(classify_error(reply->bytes)));
    /* After a BEGIN that failed the key may hold the token all the same, by a
     * wait in line. */
    not_applied = not_applied && !verb_traits[k->verb.kind].undoes_refused;
    cleanup_acquire_answered(&k->cleanup, not_applied, now);
    sort_cleaner(s, k);
}

static void kill_answered(struct server *s, struct cleaner *k,
    const struct reply *reply, uint64_t now)
{
    cleaner_kill_answered(k, reply, now);
    sort_cleaner(s, k);
}

static void delete_answered(struct server *s, struct cleaner *k,
    const struct reply *reply, uint64_t now)
{
    cleaner_delete_answered(k, reply, &s->conn, &s->dialect, now);
    if (k->cleanup.state == CLEANUP_DELETING)
        return;
    if (exchange_cancel(&k->exchange))
        request_discard(s, now);
    end_stuck_transaction(s, &k->exchange);
    if (fault_wants_reconnect(k->exchange.outcome.fault))
        s->must_reconnect = true;
    s->cleaned += k->exchange.outcome.kind == OUTCOME_MINE &&
                  !k->exchange.outcome.left_line;
    sort_cleaner(s, k);
}

static void take_sign_of_life(struct server *s, const struct reply *reply)
{
    struct facts facts = {.uptime_s = -1};
    if (reply->kind == REPLY_STRING)
        facts_read_info(&facts, reply);
    const struct server_info info = {
        .role = facts.role, .replid = facts.replid, .replicas = facts.replicas};
    s->asks_alive = s->awaits_sign = false;
    if (lineage_goes_on(s->facts.replid, s->facts.replicas, &info))
        s->alive_at = s->sign_at;
    else
        s->must_reconnect = true; /* a new connection is judged anew */
    s->facts.replicas = facts.replicas;
}

bool requests_reply(struct server *s, const struct slot *slot,
    const struct reply *reply, struct completion *c, enum fault *close,
    uint64_t now)
{
    s->heard_at = s->dialect.now = now;
    /* The server's clock is compared with ours, but now was read an unknown
     * time before this reply came: read it again. */
    if (strategies_need_clock(&s->dialect))
        s->dialect.now = later(now, clock_now());
    if (slot->kind != SLOT_HANDSHAKE) {
        s->has_answered = true;
        backoff_reset(&s->reconnect);
    }
    switch (slot->kind) {
    case SLOT_HANDSHAKE:
        *close = connect_reply(s, reply);
        return false;
    case SLOT_FSYNC:
        if (!handshake_take_fsync(&s->facts, reply))
            end_out_of_step(s, slice_of("expected an array from CONFIG GET"));
        return false;
    case SLOT_ALIVE:
        take_sign_of_life(s, reply);
        return false;
    case SLOT_MARKER:
        return false;
    case SLOT_REPLICA_WAIT:
        replica_wait_replied(s, reply);
        return false;
    case SLOT_REQUEST:
        return replied(s, slot->owner, reply, c, now);
    case SLOT_CANCELLED:
        s->conn.dropped--;
        if (slot->owner)
            acquire_answered(s, slot->owner, reply, now);
        return false;
    case SLOT_CANCELLED_QUERY:
    case SLOT_CANCELLED_READ:
        s->conn.dropped--;
        return false;
    case SLOT_DISCARD:
        s->conn.dropped--;
        if (reply->kind == REPLY_ERROR && !error_ends_transaction(reply->bytes))
            end_open_transaction(s);
        return false;
    case SLOT_KILL:
        kill_answered(s, slot->owner, reply, now);
        return false;
    case SLOT_DELETE:
        delete_answered(s, slot->owner, reply, now);
        return false;
    case SLOT_HOLE:
        break;
    }
    return false;
}
