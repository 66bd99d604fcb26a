/* SPDX-License-Identifier: MIT */
/* Cancels requests; begins the cleanups that they need, sends and drops them.
 */
#include "net/cancel.h"

#include "base/deadline.h"

void request_discard(struct server *s, uint64_t now)
{
    struct conn *c = &s->conn;
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, 1) || !command_discard(&c->out)) {
        s->end_fault = FAULT_SYSTEM;
        return;
    }
    slots_push(&c->slots, SLOT_DISCARD, NULL, now, buf_len(&c->out) - before);
    c->dropped++;
}

static void add_cleaner(struct server *s, struct cleaner *k,
    enum cleanup_cause cause, const struct verb *of, uint64_t now)
{
    cleaner_start(k, cause, of, now);
    list_append(&s->cleaners, &k->node);
    if (k->cleanup.state == CLEANUP_IDLE)
        list_append(&s->idle_cleaners, &k->idle_node);
    s->cleanup_times_known = false;
}

/* A token that is too long for a cleaner is no lock's: nothing is cleaned up.
 */
static struct cleaner *take_spare(struct request *r, struct slice token)
{
    struct cleaner *k = r->spare;
    if (!k || k->room - k->verb.key.len < token.len)
        return NULL;
    r->spare = NULL;
    return k;
}

/* The spare cleaner is for the release that follows. If there is no memory for
 * another one, it is used nonetheless when the connection was lost, because
 * there may be no release. */
static struct cleaner *cleaner_in_use(struct request *r, bool lost)
{
    const struct verb *verb = r->exchange.verb;
    struct cleaner *k =
        r->spare ? cleaner_new(verb->key, verb->token.len) : NULL;
    return k || !lost ? k : take_spare(r, verb->token);
}

/* Begins the cleanup of r. NULL: none is needed, or there is no memory
 * for it. */
static struct cleaner *begin_cleanup(
    struct server *s, struct request *r, enum cleanup_cause cause, uint64_t now)
{
    const struct verb *verb = r->exchange.verb;
    bool in_use =
        cause == CLEANUP_ACQUIRE_IN_USE || cause == CLEANUP_ACQUIRE_LOST;
    if (cause == CLEANUP_NONE)
        return NULL;
    struct cleaner *k = in_use
                            ? cleaner_in_use(r, cause == CLEANUP_ACQUIRE_LOST)
                            : take_spare(r, verb->token);
    if (!k)
        return NULL;
    exchange_inherit(&k->exchange, &r->exchange);
    add_cleaner(s, k, cause, verb, now);
    if (in_use)
        cleaner_link(k, &r->acquire_cleaner);
    return k;
}

static struct cancelled describe(
    const struct request *r, enum cancel_stage stage, bool undo)
{
    return (struct cancelled){
        .verb = r->exchange.verb->kind,
        .stage = stage,
        .undo = undo,
        .may_hold = r->exchange.verb->may_hold_token,
        .never_undo = !exchange_may_undo(&r->exchange),
        .compares = exchange_compares(&r->exchange),
        .never_sent = r->sent_at == 0,
        .unsure = r->unsure,
        .cleanup = r->acquire_cleaner ? &r->acquire_cleaner->cleanup : NULL,
    };
}

void request_lost(
    struct server *s, struct request *r, const struct facts *of, uint64_t now)
{
    struct cancelled lost = describe(r, CANCEL_LOST, false);
    struct cleaner *k = begin_cleanup(s, r, cancel_request(&lost).cause, now);
    if (k)
        cleanup_connection_lost(&k->cleanup, of->client_id, of->run_id, now);
}

/* The cleanup of the unanswered acquire of token, if there is one and it may
 * delete. */
static struct cleanup *acquire_cleanup_of(
    const struct request *r, struct slice token)
{
    bool known = r->acquire_cleaner &&
                 exchange_may_undo(&r->acquire_cleaner->exchange) &&
                 slice_equal(r->acquire_cleaner->verb.token, token);
    return known ? &r->acquire_cleaner->cleanup : NULL;
}

static void end_use(struct server *s, struct request *r, struct slice token,
    uint64_t not_after, uint64_t now)
{
    struct cleanup *cleanup = acquire_cleanup_of(r, token);
    if (cleanup)
        cleanup_not_in_use(cleanup, not_after, now);
    s->cleanup_times_known = false;
}

void request_released(struct server *s, struct request *r, uint64_t now)
{
    const struct verb *verb = r->exchange.verb;
    struct cleanup *cleanup = acquire_cleanup_of(r, verb->token);
    if (cleanup)
        cleanup_release_answered(
            cleanup, &r->exchange.outcome, verb->not_after, now);
    s->cleanup_times_known = false;
}

/* The kind of slot for a request that is no longer waited for, by what it may
 * have done. */
static enum slot_kind kind_when_dropped(const struct request *r)
{
    const struct verb_traits *verb = &verb_traits[r->exchange.verb->kind];
    if (!verb->changes_no_lock)
        return SLOT_CANCELLED;
    return strategy_stores_reply(&r->exchange) ? SLOT_CANCELLED_QUERY
                                               : SLOT_CANCELLED_READ;
}

/* Takes r's remaining slots, from index on, away from it. If there is a cleaner
 * k, it gets the one at place, as a slot of that kind. */
static void drop_slots(struct server *s, struct request *r, size_t index,
    struct cleaner *k, size_t place, enum slot_kind kind)
{
    enum slot_kind rest = kind_when_dropped(r);
    for (size_t i = index; i < s->conn.slots.count; i++) {
        struct slot *slot = slots_at(&s->conn.slots, i);
        if (slot->owner != r || slot->kind != SLOT_REQUEST)
            return;
        bool owned = k && i == index + place;
        slot->kind = owned ? kind : rest;
        slot->owner = owned ? k : NULL;
        s->conn.dropped += slot->kind == rest;
    }
}

/* The same when part of r's current step was sent; index: of its first slot. */
static void drop_sent_slots(struct server *s, struct request *r, size_t index,
    int place, struct cleaner *k, enum cleanup_cause cause)
{
    if (k && cause == CLEANUP_RELEASE_SENT) {
        exchange_move(&r->exchange, &k->exchange, &k->verb);
        drop_slots(s, r, index, k, 0, SLOT_DELETE);
    } else {
        drop_slots(s, r, index, cause == CLEANUP_TOKEN ? NULL : k,
            (size_t)place, SLOT_CANCELLED);
    }
}

static bool cancel_formatted(
    struct server *s, struct request *r, bool undo, uint64_t now)
{
    struct slots *slots = &s->conn.slots;
    /* If the first of two replies has come, its slot is gone. */
    uint64_t number = later(r->slot, slots->popped);
    size_t index = (size_t)(number - slots->popped);
    bool unsent =
        number >= s->conn.first_unsent && !exchange_is_joined(&r->exchange);
    int place = -1;
    struct cancelled what =
        describe(r, unsent ? CANCEL_UNSENT : CANCEL_SENT, undo);
    if (!unsent && verb_acquires(what.verb))
        place = exchange_deciding_reply(&r->exchange, number > r->slot);
    what.writes = place >= 0;
    struct cancellation c = cancel_request(&what);
    struct cleaner *k = begin_cleanup(s, r, c.cause, now);
    if (c.ends_use)
        end_use(
            s, r, r->exchange.verb->token, r->exchange.verb->not_after, now);
    bool opened = exchange_cancel(&r->exchange);
    r->state = REQUEST_IDLE;
    if (unsent) {
        conn_withdraw(&s->conn, number, r->exchange.due);
        opened = opened && exchange_opened(&r->exchange);
    } else {
        drop_sent_slots(s, r, index, place, k, c.cause);
    }
    if (opened) /* else the next commands would be part of the transaction */
        request_discard(s, now);
    /* The compare-and-delete follows at once what may have granted. */
    if (k && verb_may_grant(what.verb) && k->cleanup.state == CLEANUP_IDLE &&
        !s->dialect.in_transaction)
        cleaner_send(k, &s->conn, &s->dialect, &s->facts, now);
    return c.changed_nothing;
}

bool server_cancel(struct request *r, bool undo, uint64_t now)
{
    struct server *s = r->server;
    const struct verb *verb = r->exchange.verb;
    if (!verb) /* it was never submitted */
        return true;
    if (r->state == REQUEST_SENT)
        return cancel_formatted(s, r, undo, now);
    bool waits = r->state == REQUEST_QUEUED;
    /* What waits for replicas was applied, so it has not "changed nothing". */
    r->unsure = r->unsure || r->state == REQUEST_AWAITS_REPLICAS;
    if (r->state != REQUEST_IDLE)
        list_remove(&r->node);
    r->state = REQUEST_IDLE;
    struct cancelled what =
        describe(r, waits ? CANCEL_UNSENT : CANCEL_ENDED, undo);
    struct cancellation c = cancel_request(&what);
    begin_cleanup(s, r, c.cause, now);
    if (c.ends_use)
        end_use(s, r, verb->token, verb->not_after, now);
    return c.changed_nothing;
}

static void clean_up(struct request *r, const struct verb *of, uint64_t now)
{
    struct server *s = r->server;
    struct cleaner *k = take_spare(r, of->token);
    end_use(s, r, of->token, of->not_after, now);
    if (!k)
        return;
    exchange_inherit(&k->exchange, &r->exchange);
    add_cleaner(s, k, CLEANUP_TOKEN, of, now);
}

void server_clean_up(struct request *r, struct slice token, uint32_t ttl_ms,
    uint64_t not_after, uint64_t now)
{
    struct verb of = {.kind = VERB_RELEASE,
        .token = token,
        .ttl_ms = ttl_ms,
        .not_after = not_after};
    clean_up(r, &of, now);
}

void server_undo_begin(
    struct request *r, struct slice token, uint32_t ttl_ms, uint64_t now)
{
    struct verb of = {.kind = VERB_BEGIN, .token = token, .ttl_ms = ttl_ms};
    clean_up(r, &of, now);
}

static bool is_of(const struct cleaner *k, struct slice key, struct slice token)
{
    return slice_equal(k->verb.key, key) && slice_equal(k->verb.token, token);
}

bool server_may_have_earlier_token(const struct request *r)
{
    const struct server *s = r->server;
    struct slice key = r->exchange.verb->key;
    if (s->given_up != r->given_up)
        return true;
    for (struct list *n = s->cleaners.next; n != &s->cleaners; n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, node);
        if (slice_equal(k->verb.key, key) && !k->cleanup.in_use)
            return true;
    }
    return false;
}

bool server_can_adopt(
    const struct server *s, struct slice key, struct slice token)
{
    for (struct list *n = s->cleaners.next; n != &s->cleaners; n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, node);
        if (is_of(k, key, token) && !cleanup_can_cancel(&k->cleanup))
            return false;
    }
    return true;
}

void server_adopt(
    struct request *r, struct slice key, struct slice token, bool applied)
{
    struct server *s = r->server;
    struct list *node = s->cleaners.next, *next;
    s->cleanup_times_known = false;
    for (; node != &s->cleaners; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, node);
        if (!is_of(k, key, token))
            continue;
        cleanup_cancel(&k->cleanup, applied);
        if (cleanup_over(&k->cleanup))
            cleaner_free(k);
        else
            cleaner_link(k, &r->acquire_cleaner);
    }
}

void request_wait_again(struct server *s, struct request *r)
{
    r->state = REQUEST_QUEUED;
    if (r->exchange.step == 0)
        r->sent_at = 0;
    list_append(&s->queued, &r->node);
}

/* ------------------------------------------------------- past the deadline */

/* Takes back the compare-and-delete that begins at slot number. A CLIENT KILL
 * before it stays. */
static void withdraw_delete(
    struct server *s, struct cleaner *k, uint64_t number, uint64_t now)
{
    bool opened = exchange_cancel(&k->exchange);
    conn_withdraw(&s->conn, number, k->exchange.due);
    if (opened && exchange_opened(&k->exchange))
        request_discard(s, now);
    cleanup_withdrawn(&k->cleanup, now);
    if (k->cleanup.state == CLEANUP_IDLE)
        list_append(&s->idle_cleaners, &k->idle_node);
    s->cleanup_times_known = false;
}

/* A TELL that would delete the key, which by now may be another process's. It
 * is formatted anew, to leave the key alone. */
static void withdraw_tell(struct server *s, struct request *r, uint64_t number)
{
    conn_withdraw(&s->conn, number, r->exchange.due);
    request_wait_again(s, r);
}

static bool tells_too_late(const struct request *r, uint64_t now)
{
    const struct verb *verb = r->exchange.verb;
    return verb_traits[verb->kind].may_be_late && verb_past_use(verb, now) &&
           !verb_past_use(verb, r->exchange.encoded_at);
}

static void withdraw_request(
    struct server *s, struct request *r, uint64_t number, uint64_t now)
{
    bool opened = exchange_cancel(&r->exchange);
    conn_withdraw(&s->conn, number, r->exchange.due);
    if (opened && exchange_opened(&r->exchange))
        request_discard(s, now);
    request_fail_late(s, r);
}

void requests_withdraw_late(struct server *s, uint64_t now)
{
    struct conn *c = &s->conn;
    for (uint64_t n = c->first_unsent; n < slots_end(&c->slots); n++) {
        if (n < c->slots.popped)
            continue; /* withdrawing may have removed slots at the front */
        struct slot slot = *slots_at(&c->slots, (size_t)(n - c->slots.popped));
        struct request *r = slot.owner;
        struct cleaner *k = slot.owner;
        if (slot.bytes == 0) /* the rest of a group */
            continue;
        if (slot.kind == SLOT_DELETE && cleanup_too_late(&k->cleanup, now))
            withdraw_delete(s, k, n, now);
        else if (slot.kind == SLOT_REQUEST &&
                 verb_too_late(r->exchange.verb, now))
            withdraw_request(s, r, n, now);
        else if (slot.kind == SLOT_REQUEST && tells_too_late(r, now))
            withdraw_tell(s, r, n);
    }
}

/* Finds the earliest times of the list. A server that hangs may leave many
 * cleanups, so the list is searched only after one has changed, not in every
 * iteration of the loop. */
static void find_cleanup_times(struct server *s)
{
    if (s->cleanup_times_known)
        return;
    s->cleanup_times_known = true;
    s->cleanup_next_at = s->cleanup_expires_at = NEVER;
    for (struct list *n = s->idle_cleaners.next; n != &s->idle_cleaners;
         n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, idle_node);
        s->cleanup_next_at = earlier(s->cleanup_next_at, k->cleanup.next_try);
        s->cleanup_expires_at =
            earlier(s->cleanup_expires_at, k->cleanup.until);
    }
}

void cleanup_finished(struct server *s, struct cleaner *k)
{
    s->given_up += k->cleanup.state == CLEANUP_GIVEN_UP;
    cleaner_free(k);
}

/* An expired cleanup must not cause further iterations. None of those in this
 * list has a slot on the connection, so they can be freed. */
void cleanups_expire(struct server *s, uint64_t now)
{
    find_cleanup_times(s);
    if (now < s->cleanup_expires_at)
        return;
    s->cleanup_times_known = false;
    struct list *node = s->idle_cleaners.next, *next;
    for (; node != &s->idle_cleaners; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, idle_node);
        cleanup_tick(&k->cleanup, now);
        if (cleanup_over(&k->cleanup))
            cleanup_finished(s, k);
    }
}

void cleanups_send(struct server *s, uint64_t now)
{
    find_cleanup_times(s);
    if (now < s->cleanup_next_at || s->conn.blocked)
        return;
    s->cleanup_times_known = false;
    struct list *node = s->idle_cleaners.next, *next;
    for (; node != &s->idle_cleaners; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, idle_node);
        if (k->cleanup.next_try <= now && !s->dialect.in_transaction)
            cleaner_send(k, &s->conn, &s->dialect, &s->facts, now);
    }
}

uint64_t cleanups_next_at(struct server *s)
{
    find_cleanup_times(s);
    return s->cleanup_next_at;
}
