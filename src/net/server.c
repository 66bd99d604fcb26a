/* SPDX-License-Identifier: MIT */
/*
 * The life of the connection to one server: when it is made, used, checked,
 * closed and made again.
 *
 * Invariant: no lock command is sent before the end of a handshake that can be
 * refused. When a connection ends, every command on it has been withdrawn, has
 * failed as unsure or has a cleanup before its slot is dropped.
 */
#include "net/server.h"

#include "base/deadline.h"
#include "model/guard.h"
#include "net/cancel.h"
#include "net/connect.h"
#include "net/quote.h"
#include "net/subscription.h"

/* A connection that was silent for this long, and not checked for as long, is
 * checked with poll() before it is used again: a busy program should not pay
 * for that each time, nor one that sends many requests at once for each. */
#define LOOK_AGAIN NS_PER_MS
/* How often a lost connection is read: enough for all replies that are due. */
#define LAST_READS 4

/* Has the server a connection that takes commands, if only of the handshake? */
static bool is_open(const struct server *s)
{
    return s->state == SERVER_SHAKING || s->state == SERVER_UP;
}

/* There is no connection any longer, nor an attempt to make one. */
static void go_down(struct server *s, uint64_t now)
{
    s->state = SERVER_DOWN;
    s->unlocated = s->uses_sentinels;
    s->lost_at = now;
}

/* No connection can be made: fails every request that waits for one. */
static void connect_failed(struct server *s, enum fault fault, uint64_t now)
{
    go_down(s, now);
    s->why_fault = fault;
    s->trying = false;
    s->not_before = deadline_after(now, backoff_next(&s->reconnect));
    struct list *node;
    while ((node = list_pop(&s->queued))) {
        struct request *r = list_entry(node, struct request, node);
        request_fail(s, r, fault, r->unsure);
    }
}

void server_require_reconnect(struct server *s)
{
    if (s->state == SERVER_UP)
        s->must_reconnect = true;
}

static void close_connection(struct server *s, enum fault fault, uint64_t now)
{
    requests_cut_off(s, fault, now);
    conn_close(&s->conn);
    s->dialect.in_transaction = NULL;
    s->end_fault = FAULT_NONE;
    s->must_reconnect = false;
    go_down(s, now);
    s->why_fault = fault;
}

static void end_connection(struct server *s, enum fault fault, uint64_t now)
{
    bool was_up = s->state == SERVER_UP;
    bool refused = s->state == SERVER_SHAKING && s->handshake.refused;
    if (refused) { /* report its refusal, not the closed connection */
        fault = s->handshake.refused;
        quote_refusal(s);
    }
    bool again = s->handshake.login_refused && refused &&
                 login_note_refusal(&s->login, now);
    if (fault == FAULT_UNREACHABLE && !was_up)
        connect_explain_close(s);
    if (fault == FAULT_CERTIFICATE || (fault == FAULT_CLUSTER && !was_up))
        s->completed_handshake =
            false; /* it may refuse again: send no lock command early */
    close_connection(s, fault, now);
    if (again)
        s->not_before = now;
    else if (!was_up)
        connect_failed(s, fault, now);
    else if (s->has_answered)
        s->not_before = now;
    else /* it accepts clients, then disconnects them */
        s->not_before = deadline_after(now, backoff_next(&s->reconnect));
}

static void begin_handshake(
    struct server *s, struct transport *transport, uint64_t now)
{
    s->state = SERVER_SHAKING;
    s->connections++;
    s->has_answered = s->logged_in = false;
    s->handshake_terms.user = s->login.user;
    s->handshake_terms.password = s->login.password;
    dialect_begin(&s->dialect);
    if (!conn_open(&s->conn, transport, &s->why)) {
        connect_failed(s, FAULT_SYSTEM, now);
        return;
    }
    s->heard_at = now;
    name_check_restart(&s->name_check, now);
    unsigned replies =
        handshake_begin(&s->handshake, &s->handshake_terms, &s->conn.out);
    if (!replies || !slots_reserve(&s->conn.slots, replies)) {
        text_set(&s->why, "out of memory: cannot store the handshake");
        end_connection(s, FAULT_SYSTEM, now);
        return;
    }
    s->handshake.facts.asked_at = s->alive_at = now;
    s->asks_alive = s->awaits_sign = false;
    size_t bytes = buf_len(&s->conn.out);
    for (unsigned i = 0; i < replies; i++)
        slots_push(
            &s->conn.slots, SLOT_HANDSHAKE, NULL, now, i == 0 ? bytes : 0);
}

static void dialled(struct server *s, enum dial_state state,
    struct transport *made, enum fault fault, uint64_t now)
{
    if (state == DIAL_CONNECTED)
        begin_handshake(s, made, now);
    else if (state == DIAL_FAILED)
        connect_failed(s, fault, now);
}

static void dial_on(struct server *s, uint64_t now)
{
    struct transport made;
    enum fault fault;
    enum dial_state state = connect_step(s, now, &made, &fault);
    dialled(s, state, &made, fault, now);
}

static void connect_now(struct server *s, uint64_t now)
{
    struct transport made;
    enum fault fault;
    s->state = SERVER_CONNECTING;
    if (!s->trying)
        s->tried_at = now;
    s->trying = true;
    s->connect_by = NEVER;
    s->connect_end = deadline_after_ms(now, s->to.settings->timeout_ms);
    enum dial_state state = connect_start(s, now, &made, &fault);
    dialled(s, state, &made, fault, now);
}

/* When to connect for the requests that wait; NEVER if there are none. */
static uint64_t wanted_at(const struct server *s)
{
    return list_empty(&s->queued) ? NEVER
                                  : earlier(s->not_before, s->connect_by);
}

/* The class of the reader's error: the peer's fault, or lack of memory here. */
static enum fault stream_fault(const struct server *s)
{
    return reader_starved(s->conn.reader) ? FAULT_SYSTEM : FAULT_NOT_REDIS;
}

/* The stream has ended; what came before its end is still in the reader. */
static void note_end(struct server *s, bool broken)
{
    s->end_fault =
        broken ? stream_fault(s) : transport_fault(&s->conn.transport);
}

static void read_once(struct server *s)
{
    bool broken;
    if (!conn_read(&s->conn, &s->why, &broken))
        note_end(s, broken);
}

/* The peer has closed the connection. Reads what it sent before; server_next()
 * takes that, then ends the connection. */
static void read_the_rest(struct server *s)
{
    for (int i = 0; i < LAST_READS && !s->end_fault; i++)
        read_once(s);
    if (!s->end_fault)
        s->end_fault = FAULT_UNREACHABLE;
}

/* Formats what may leave now. */
static void format_due(struct server *s, uint64_t now)
{
    if (s->state == SERVER_UP)
        cleanups_send(s, now);
    /* Lock commands are sent together with the handshake only if no refusal in
     * it, or of our certificate, could change their meaning, and if the peer is
     * known to be a Redis server and no node of a Redis Cluster: what another
     * one would do with them is unknown. Cleanups come first, and wait for the
     * end of the handshake. */
    bool eager = s->may_send_early && s->completed_handshake &&
                 !s->facts.cluster && !s->listens && !s->to.settings->cert &&
                 list_empty(&s->cleaners);
    if (s->state == SERVER_UP || eager || !guarded(GUARD_HANDSHAKE))
        requests_format(s, now);
}

/* Has a request or the connection failed since server_next() returned false? */
static bool has_failed(const struct server *s)
{
    return !list_empty(&s->failed) || s->end_fault != FAULT_NONE;
}

/* Is there nothing to be formatted or sent? So it is in half of all iterations.
 */
static bool is_quiet(const struct server *s)
{
    return list_empty(&s->queued) && list_empty(&s->idle_cleaners) &&
           !s->awaits_sentinels && !s->replica_wait.due &&
           !buf_len(&s->conn.out) && !s->conn.transport.wants_write;
}

bool server_push(struct server *s, uint64_t now)
{
    cleanups_expire(s, now);
    if (list_empty(&s->queued))
        s->connect_by = NEVER; /* its request has been sent or cancelled */
    if (s->state == SERVER_UP && s->name_check.every &&
        name_check_moved(&s->name_check, &s->to, s->conn.transport.fd,
            !list_empty(&s->queued), now))
        s->must_reconnect = true;
    /* Not the primary: do not send cleanups here, they would prove nothing. */
    if (s->must_reconnect && s->conn.slots.count == 0)
        end_connection(s, FAULT_NOT_PRIMARY, now);
    if (s->state == SERVER_DOWN && !s->unlocated &&
        (now >= wanted_at(s) ||
            (now >= s->not_before && cleanups_next_at(s) <= now)))
        connect_now(s, now);
    if (!is_open(s) || s->end_fault || is_quiet(s))
        return has_failed(s);
    if (buf_len(&s->conn.out))
        requests_withdraw_late(s, now);
    if (!s->must_reconnect)
        format_due(s, now);
    if (!conn_flush(&s->conn, &s->why))
        read_the_rest(s);
    return has_failed(s);
}

/* Goes on with what the poller reported. */
static void take_ready(struct server *s, uint64_t now)
{
    short ready = s->ready;
    bool broken;
    s->ready = 0;
    if (s->state == SERVER_CONNECTING)
        dial_on(s, now);
    else if (is_open(s) && !conn_ready(&s->conn, ready, &s->why, &broken))
        note_end(s, broken);
}

static uint64_t oldest_sent(const struct server *s)
{
    return s->conn.slots.count ? slots_at(&s->conn.slots, 0)->sent_at : NEVER;
}

static uint64_t stale_at(const struct server *s)
{
    uint64_t patience = later(
        ms_to_ns(SERVER_STALE_MS), 2 * ms_to_ns(s->to.settings->timeout_ms));
    return deadline_after(oldest_sent(s), patience);
}

void server_drop_connection(
    struct server *s, enum fault fault, const char *why, uint64_t now)
{
    if (!is_open(s))
        return;
    text_set(&s->why, why);
    end_connection(s, fault, now);
    s->not_before = now;
}

/* No reply is due on the connection: whatever has come, unless messages may, is
 * unsolicited and must not be taken for the next answer. */
static void refresh_idle(struct server *s, bool look, uint64_t now)
{
    enum transport_news news =
        look ? transport_news(&s->conn.transport) : TRANSPORT_QUIET;
    if (news == TRANSPORT_OVER)
        server_drop_connection(
            s, FAULT_UNREACHABLE, "the server closed the connection", now);
    else if (!s->listens &&
             (news == TRANSPORT_TALKS || !reader_idle(s->conn.reader)))
        server_drop_connection(
            s, FAULT_NOT_REDIS, "unsolicited reply from server", now);
    else if (s->must_reconnect) /* the host name may lead to another server by
                                   now */
        server_drop_connection(s, FAULT_NOT_PRIMARY, "not the primary", now);
}

/* The server closed the connection while nobody drove the client. In the
 * handshake that says nothing about the server now, unless it had refused the
 * login: the requests that wait get the next connection. */
static void refresh_closed(struct server *s, uint64_t now)
{
    static const char why[] = "the server closed the connection";
    if (s->state == SERVER_UP) {
        read_the_rest(s);
    } else if (s->handshake.refused) {
        server_drop_connection(s, FAULT_UNREACHABLE, why, now);
    } else {
        text_set(&s->why, why);
        close_connection(s, FAULT_UNREACHABLE, now);
        s->not_before = now;
    }
}

static void give_up_attempt(struct server *s, uint64_t now)
{
    connect_cancel(s);
    go_down(s, now);
    s->trying = false;
    s->not_before = now;
}

static void refresh(struct server *s, uint64_t now)
{
    if (s->state == SERVER_CONNECTING &&
        (now >= s->connect_end || login_drop_stale(&s->login, now))) {
        /* The attempt timed out while nobody drove the client, which says
         * nothing about the server now. */
        give_up_attempt(s, now);
    }
    if (!is_open(s) || s->end_fault)
        return;
    uint64_t known_at = later(s->heard_at, s->silence_checked_at);
    bool look = s->conn.transport.pending ||
                now >= deadline_after(known_at, LOOK_AGAIN);
    if (look)
        s->silence_checked_at = now;
    if (s->conn.slots.count == 0)
        refresh_idle(s, look, now);
    else if (now >= stale_at(s))
        server_drop_connection(s, FAULT_TIMEOUT, "no answer for too long", now);
    else if (look && transport_news(&s->conn.transport) == TRANSPORT_OVER)
        refresh_closed(s, now);
}

/* All that has come is read, and the oldest command is not answered. True: for
 * too long, so the connection was ended. */
static bool end_stale(struct server *s, uint64_t now)
{
    if (now < stale_at(s))
        return false;
    text_set(&s->why, "no answer for ");
    text_add_duration(&s->why, (now - oldest_sent(s)) / NS_PER_MS, false);
    end_connection(s, FAULT_TIMEOUT, now);
    return true;
}

/* When to connect, for requests or for cleanups. */
static uint64_t connect_at(struct server *s)
{
    uint64_t at = cleanups_next_at(s);
    return earlier(
        wanted_at(s), at == NEVER ? NEVER : later(at, s->not_before));
}

uint64_t server_locate_by(struct server *s)
{
    return s->state == SERVER_DOWN && s->unlocated ? connect_at(s) : NEVER;
}

void server_located(struct server *s)
{
    s->unlocated = false;
}

void server_leave(struct server *s, const char *why, uint64_t now)
{
    server_drop_connection(s, FAULT_DEMOTED, why, now);
    if (s->state == SERVER_CONNECTING)
        give_up_attempt(s, now);
}

void server_moved(struct server *s, uint64_t now)
{
    backoff_reset(&s->reconnect);
    s->not_before = now;
}

void server_not_found(
    struct server *s, enum fault fault, const struct text *why, uint64_t now)
{
    s->why = *why;
    if (s->state == SERVER_DOWN && s->unlocated)
        connect_failed(s, fault, now);
    else
        requests_unconfirmed(s, fault, now);
}

uint64_t server_deadline(struct server *s)
{
    if (has_failed(s) || s->conn.transport.pending)
        return 0;
    if (s->state == SERVER_DOWN)
        return s->unlocated ? NEVER : connect_at(s);
    uint64_t at = cleanups_next_at(s);
    if (s->state == SERVER_CONNECTING)
        return connect_deadline(s);
    if (s->state == SERVER_SHAKING || s->dialect.in_transaction ||
        s->conn.blocked || (s->must_reconnect && s->conn.slots.count))
        at = NEVER; /* cleanups must wait until this has changed */
    else if (!list_empty(&s->queued) && !s->awaits_sign &&
             !s->awaits_sentinels && s->replica_wait.under_way == 0)
        return 0;
    at = earlier(at, s->name_check.due);
    return earlier(at, stale_at(s));
}

/* May the command have changed something, or may it still? */
static bool matters(const struct slot *slot)
{
    return slot->kind == SLOT_REQUEST || slot->kind == SLOT_CANCELLED ||
           slot->kind == SLOT_DELETE || slot->kind == SLOT_KILL;
}

bool server_unfinished(struct server *s, uint64_t end)
{
    const struct slots *slots = &s->conn.slots;
    for (size_t i = 0; i < slots->count; i++)
        if (matters(slots_at(slots, i)))
            return true;
    uint64_t at = cleanups_next_at(s);
    if (s->state == SERVER_DOWN)
        at = later(at, s->not_before);
    return at < end;
}

void server_submit(struct request *r, const struct verb *verb,
    struct command_cache *cache, uint64_t now)
{
    refresh(r->server, now);
    request_submit(r, verb, cache);
}

/* The first request that has failed; false: none has. */
static bool next_failed(struct server *s, struct completion *c)
{
    struct list *node = list_pop(&s->failed);
    if (!node)
        return false;
    struct request *r = list_entry(node, struct request, node);
    struct slice why = {s->why.data, s->why.len};
    if (r->too_late) /* whatever has become of the connection */
        why = slice_of("the lease ended before the release could be sent");
    r->state = REQUEST_IDLE;
    *c = (struct completion){r, {.kind = OUTCOME_FAULT,
                                    .fault = r->fault,
                                    .unsure = r->unsure,
                                    .applied = r->applied,
                                    .sent_at = r->sent_at,
                                    .tried_at = r->sent_at ? 0 : s->tried_at,
                                    .left_ms = LEFT_UNKNOWN,
                                    .text = why}};
    return true;
}

/* What form the reply to the oldest command has, and where its values go. */
static struct expected expected(const struct server *s)
{
    const struct slots *slots = &s->conn.slots;
    struct expected e = {0};
    if (!slots->count)
        return e;
    const struct slot *slot = slots_at(slots, 0);
    if (slot->kind != SLOT_REQUEST) {
        e.loose =
            slot->kind == SLOT_CANCELLED_QUERY || slot->kind == SLOT_CANCELLED;
        return e;
    }
    const struct request *r = slot->owner;
    e.loose = strategy_stores_reply(&r->exchange);
    if (e.loose)
        e.values = r->exchange.verb->values;
    return e;
}

/* Handles a reply, or garbage. True: it completed a request. */
static bool take_reply(struct server *s, int got, const struct reply *reply,
    struct completion *c, uint64_t now)
{
    enum fault close = FAULT_NONE;
    bool completed = false;
    struct slot slot;
    if (got < 0) {
        quote_garbage(s);
        close = stream_fault(s);
    } else if (s->state == SERVER_SHAKING && handshake_is_farewell(reply)) {
        close = connect_reply(s, reply); /* even before any command */
    } else if (s->listens && subscription_take(s, reply, c, now)) {
        return true;
    } else if (!conn_pop(&s->conn, &slot)) {
        text_set(&s->why, "unsolicited reply from server");
        close = stream_fault(s);
    } else {
        completed = requests_reply(s, &slot, reply, c, &close, now);
    }
    if (close != FAULT_NONE)
        end_connection(s, close, now);
    return completed;
}

bool server_next(struct server *s, struct completion *c, uint64_t now)
{
    if (s->ready)
        take_ready(s, now);
    if (s->state == SERVER_CONNECTING && now >= connect_deadline(s))
        dial_on(s, now);
    for (;;) {
        if (next_failed(s, c) ||
            (s->replica_wait.in_use && requests_ready(s, c, now)))
            return true;
        if (!is_open(s))
            return false;
        if (s->end_fault == FAULT_NOT_REDIS) { /* do not trust the rest */
            end_connection(s, s->end_fault, now);
            continue;
        }
        const struct reply *reply = NULL;
        int got = reader_next(s->conn.reader, expected(s), &reply);
        if (got == 0 && s->end_fault)
            end_connection(s, s->end_fault, now);
        else if (got == 0 && s->conn.transport.pending)
            read_once(s);
        else if (got == 0 && !end_stale(s, now))
            return false;
        else if (got != 0 && take_reply(s, got, reply, c, now))
            return true;
    }
}
