/* SPDX-License-Identifier: MIT */
/*
 * The life of the connection. Keeps: no lock command precedes the end of a
 * handshake that could have been refused; when a connection ends, every
 * command on it is accounted for as withdrawn, unsure or owed before its slot
 * is forgotten.
 */
#include "net/server.h"

#include <nxlock.h>

#include "base/deadline.h"
#include "base/guard.h"
#include "net/request.h"

#define RECONNECT_FIRST (10 * NS_PER_MS)
#define RECONNECT_MOST (500 * NS_PER_MS)
/* A connection silent for so long is looked at before it is used again: that
 * costs a system call, which a busy program should not pay each time. */
#define LOOK_AGAIN NS_PER_MS
/* Times that a lost connection is read from: more than all replies due. */
#define HEAR_OUT 4

void server_init(struct server *s, const struct endpoint *endpoint, bool sole,
    uint64_t seed)
{
    *s = (struct server){.endpoint = *endpoint};
    const struct settings *set = &s->endpoint.settings;
    s->who.db = (unsigned)set->db;
    if (set->user)
        s->who.user = slice_of(set->user);
    if (set->password)
        s->who.password = slice_of(set->password);
    s->ladder.stamps = set->scheme == NXL_SCHEME_TIMESTAMP;
    s->ladder.interop = set->interop != 0;
    s->ladder.max_ttl_ms = (uint32_t)set->max_ttl_ms;
    s->plain = sole && handshake_is_plain(&s->who);
    s->who.needs_info = !sole;
    s->conn.fd = -1;
    s->dial.fd = -1;
    list_init(&s->waiting);
    list_init(&s->failed);
    list_init(&s->debts);
    list_init(&s->owed);
    /* However long the server was away, a call tries to connect in its time. */
    backoff_init(&s->reconnect, RECONNECT_FIRST,
        earlier(RECONNECT_MOST, ms_to_ns(set->timeout_ms) / 2), seed);
}

void server_watch(struct server *s, const struct watch *watch, unsigned key)
{
    s->conn.watch = s->dial.watch = watch;
    s->conn.key = s->dial.key = key;
}

void server_free(struct server *s)
{
    dial_free(&s->dial);
    conn_free(&s->conn);
    while (!list_empty(&s->debts))
        debt_free(list_entry(s->debts.next, struct debt, node));
    endpoint_free(&s->endpoint);
}

/* No connection came of it: whoever waits for one is told. */
static void connect_failed(struct server *s, enum fault fault, uint64_t now)
{
    s->state = SERVER_DOWN;
    s->why_fault = fault;
    s->not_before = deadline_after(now, backoff_next(&s->reconnect));
    struct list *node;
    while ((node = list_pop(&s->waiting))) {
        struct request *r = list_entry(node, struct request, node);
        request_fail(s, r, fault, r->unsure);
    }
}

void server_refuse(
    struct server *s, enum fault fault, const struct text *words)
{
    struct list *node = s->waiting.next, *next;
    for (; node != &s->waiting; node = next) {
        next = node->next;
        struct request *r = list_entry(node, struct request, node);
        if (r->exchange.verb->kind != VERB_ACQUIRE || r->sent_at)
            continue;
        s->why = *words;
        list_remove(&r->node);
        request_fail(s, r, fault, false);
    }
}

void server_look_again(struct server *s)
{
    if (s->state == SERVER_UP)
        s->elsewhere = true;
}

void server_close(struct server *s, enum fault fault, uint64_t now)
{
    bool was_up = s->state == SERVER_UP;
    if (fault == FAULT_UNREACHABLE && !was_up && !s->known)
        text_add(&s->why, ", before it had answered (a TLS port?)");
    requests_cut_off(s, fault, now);
    conn_close(&s->conn);
    s->ladder.alone = NULL;
    s->ended = FAULT_NONE;
    s->elsewhere = false;
    s->state = SERVER_DOWN;
    s->why_fault = fault;
    if (!was_up)
        connect_failed(s, fault, now);
    else if (s->good)
        s->not_before = now;
    else /* it takes in clients, and throws them out when they speak */
        s->not_before = deadline_after(now, backoff_next(&s->reconnect));
}

static void begin_handshake(struct server *s, int fd, uint64_t now)
{
    s->state = SERVER_SHAKING;
    s->connections++;
    s->good = false;
    ladder_begin(&s->ladder);
    if (!conn_open(&s->conn, fd)) {
        text_clear(&s->why);
        text_add(&s->why, "no memory for a connection");
        connect_failed(s, FAULT_SYSTEM, now);
        return;
    }
    s->heard_at = now;
    unsigned replies = handshake_begin(&s->handshake, &s->who, &s->conn.out);
    if (!replies || !slots_reserve(&s->conn.slots, replies)) {
        text_clear(&s->why);
        text_add(&s->why, "no memory for the handshake");
        server_close(s, FAULT_SYSTEM, now);
        return;
    }
    size_t bytes = buf_len(&s->conn.out);
    for (unsigned i = 0; i < replies; i++)
        slots_push(&s->conn.slots,
            (struct slot){SLOT_HANDSHAKE, NULL, now, i == 0 ? bytes : 0});
}

static void dialled(
    struct server *s, enum dial_state state, int fd, uint64_t now)
{
    if (state == DIAL_CONNECTED)
        begin_handshake(s, fd, now);
    else if (state == DIAL_FAILED)
        connect_failed(
            s, s->dial.starved ? FAULT_SYSTEM : FAULT_UNREACHABLE, now);
}

static void dial_on(struct server *s, uint64_t now)
{
    int fd = -1;
    enum dial_state state =
        dial_step(&s->dial, &s->endpoint, now, &fd, &s->why);
    dialled(s, state, fd, now);
}

static void connect_now(struct server *s, uint64_t now)
{
    int fd = -1;
    s->state = SERVER_DIALLING;
    s->connect_end =
        deadline_after_ms(now, s->endpoint.settings.timeout_ms);
    enum dial_state state =
        dial_start(&s->dial, &s->endpoint, now, s->connect_end, &fd, &s->why);
    dialled(s, state, fd, now);
}

/* A server that hangs may have left many debts: they are walked through when
 * one of them has changed, not in every turn. */
static void look_at_owed(struct server *s)
{
    if (s->owed_known)
        return;
    s->owed_known = true;
    s->owed_next = s->owed_over = NEVER;
    for (struct list *n = s->owed.next; n != &s->owed; n = n->next) {
        const struct debt *d = list_entry(n, struct debt, owed);
        s->owed_next = earlier(s->owed_next, d->next_try);
        s->owed_over = earlier(s->owed_over, d->until);
    }
}

/* Time pays debts whether there is a connection or not: one that is over must
 * not ask for turns any more. None of these has a slot on the connection. */
static void forget_debts(struct server *s, uint64_t now)
{
    look_at_owed(s);
    if (now < s->owed_over)
        return;
    s->owed_known = false;
    struct list *node = s->owed.next, *next;
    for (; node != &s->owed; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, owed);
        if (debt_over(d, now))
            debt_free(d);
    }
}

/* Debts that are due leave before anything else: an acquire of the same name
 * must not be refused by what is owed. */
static void push_debts(struct server *s, uint64_t now)
{
    look_at_owed(s);
    if (now < s->owed_next)
        return;
    s->owed_known = false;
    struct list *node = s->owed.next, *next;
    for (; node != &s->owed; node = next) {
        next = node->next;
        struct debt *d = list_entry(node, struct debt, owed);
        if (d->next_try <= now && !s->ladder.alone)
            debt_send(d, &s->conn, &s->ladder, &s->facts, now);
    }
}

/* When the first of the debts wants to be sent. Those that are under way,
 * which may be many, are not looked at. */
static uint64_t debts_at(struct server *s)
{
    look_at_owed(s);
    return s->owed_next;
}

/* The peer is gone. What it said before that is taken in, for server_next,
 * which then ends the connection. */
static void hear_out(struct server *s)
{
    bool broken = false;
    for (int i = 0; i < HEAR_OUT && !s->ended; i++)
        if (!conn_read(&s->conn, &s->why, &broken))
            s->ended = broken ? stream_fault(s) : FAULT_UNREACHABLE;
    if (!s->ended)
        s->ended = FAULT_UNREACHABLE;
}

/* Formats what may leave now. */
static void format_due(struct server *s, uint64_t now)
{
    if (s->state == SERVER_UP)
        push_debts(s, now);
    /* Lock commands may follow in the handshake's flight where no refusal in
     * it could change what they mean, and where the peer is known to be a
     * Redis server: what a stranger does with them nobody can tell. Debts
     * come first, and wait for the handshake. */
    bool eager = s->plain && s->known && list_empty(&s->debts);
    if (s->state == SERVER_UP || eager || !guarded(GUARD_HANDSHAKE))
        requests_format(s, now);
}

void server_push(struct server *s, uint64_t now)
{
    forget_debts(s, now);
    /* What is to be deleted at the primary proves nothing here. */
    if (s->elsewhere && s->conn.slots.count == 0)
        server_close(s, FAULT_ELSEWHERE, now);
    if (s->state == SERVER_DOWN && now >= s->not_before &&
        (!list_empty(&s->waiting) || debts_at(s) <= now))
        connect_now(s, now);
    if (s->state < SERVER_SHAKING || s->ended)
        return;
    if (!s->elsewhere)
        format_due(s, now);
    if (buf_len(&s->conn.out) && !s->conn.blocked &&
        !conn_flush(&s->conn, &s->why))
        hear_out(s);
}

void server_ready(struct server *s, short revents, uint64_t now)
{
    if (!revents)
        return;
    if (s->state == SERVER_DIALLING) {
        dial_on(s, now);
        return;
    }
    if (s->state < SERVER_SHAKING)
        return;
    if (revents & POLLOUT)
        s->conn.blocked = false;
    bool broken = false;
    if ((revents & (POLLIN | POLLHUP | POLLERR)) &&
        !conn_read(&s->conn, &s->why, &broken)) {
        /* What came before the end is still in the reader; server_next takes
         * it, and then sees that the stream is over. */
        s->ended = broken ? stream_fault(s) : FAULT_UNREACHABLE;
    }
}

static uint64_t oldest_sent(const struct server *s)
{
    return s->conn.slots.count ? slots_at(&s->conn.slots, 0)->sent_at : NEVER;
}

static uint64_t stale_at(const struct server *s)
{
    uint64_t patience =
        later(ms_to_ns(SERVER_STALE_MS),
            2 * ms_to_ns(s->endpoint.settings.timeout_ms));
    return deadline_after(oldest_sent(s), patience);
}

/* Ends a connection before something new goes on it; that takes another one
 * at once. */
static void replace(
    struct server *s, enum fault fault, const char *why, uint64_t now)
{
    text_clear(&s->why);
    text_add(&s->why, why);
    server_close(s, fault, now);
    s->not_before = now;
}

/* Nothing is due on the connection: whatever there is was not asked for, and
 * must not be taken for the next answer. */
static void refresh_idle(struct server *s, bool look, uint64_t now)
{
    enum socket_news news = look ? socket_news(s->conn.fd) : SOCKET_QUIET;
    if (news == SOCKET_OVER)
        replace(s, FAULT_UNREACHABLE, "the server closed the connection", now);
    else if (news == SOCKET_TALKS || !reader_idle(s->conn.reader))
        replace(s, FAULT_NOT_REDIS, "an answer to nothing that was asked", now);
    else if (s->elsewhere) /* the name may lead to another server by now */
        replace(s, FAULT_ELSEWHERE, "not the primary", now);
}

void server_refresh(struct server *s, uint64_t now)
{
    if (s->state == SERVER_DIALLING && now >= s->connect_end) {
        /* Nobody was there to see it fail: it says nothing about now. */
        dial_cancel(&s->dial);
        s->state = SERVER_DOWN;
        s->not_before = now;
    }
    if (s->state < SERVER_SHAKING || s->ended)
        return;
    bool look = now >= deadline_after(s->heard_at, LOOK_AGAIN);
    if (s->conn.slots.count == 0)
        refresh_idle(s, look, now);
    else if (now >= stale_at(s))
        replace(s, FAULT_SILENT, "no answer for too long", now);
    else if (!look || socket_news(s->conn.fd) != SOCKET_OVER)
        return;
    else if (s->state == SERVER_UP)
        hear_out(s);
    else
        replace(s, FAULT_UNREACHABLE, "the server closed the connection", now);
}

void server_tick(struct server *s, uint64_t now)
{
    if (s->state == SERVER_DIALLING && now >= dial_deadline(&s->dial)) {
        dial_on(s, now);
    } else if (s->state >= SERVER_SHAKING && now >= stale_at(s)) {
        text_clear(&s->why);
        text_addf(&s->why, "no answer for %llu ms",
            (unsigned long long)((now - oldest_sent(s)) / NS_PER_MS));
        server_close(s, FAULT_SILENT, now);
    }
}

uint64_t server_deadline(struct server *s)
{
    if (!list_empty(&s->failed) || s->ended)
        return 0;
    uint64_t at = debts_at(s);
    if (s->state == SERVER_DOWN) {
        if (!list_empty(&s->waiting))
            at = 0;
        return at == NEVER ? NEVER : later(at, s->not_before);
    }
    if (s->state == SERVER_DIALLING)
        return dial_deadline(&s->dial);
    if (s->state == SERVER_SHAKING || s->ladder.alone ||
        (s->elsewhere && s->conn.slots.count))
        at = NEVER; /* for the handshake, a transaction, another server */
    else if (!list_empty(&s->waiting) && !s->conn.blocked)
        return 0;
    return earlier(at, stale_at(s));
}

bool server_owes(const struct server *s)
{
    return !list_empty(&s->debts) ||
           (s->state >= SERVER_SHAKING &&
               (s->conn.slots.count || buf_len(&s->conn.out)));
}
