/* SPDX-License-Identifier: MIT */
/*
 * A model of src/net: one pipelined connection to one server. What a cancelled
 * request leaves to be cleaned up, and what a server's answers count for, is
 * decided by the core. One subject: the states of that connection, and what is
 * under way on it.
 *
 * Invariant: each reply goes to the slot of its command; when a connection
 * ends, every command on it is accounted for as unsure or to be cleaned up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/client.h"
#include "sim/sentinels.h"
#include "sim/server.h"
#include "sim/world.h"

#define DROPPED_FEW 8
#define DROPPED_PATIENCE (500 * MS)
#define RECONNECT_FIRST (10 * MS)
#define RECONNECT_MAX (500 * MS)
#define WAITS_PER_TTL 20 /* see net/replica_wait.c */
#define WAIT_MIN_MS 50
#define WAIT_MAX_MS 500

static struct model_server *server_of(struct world *w, const struct link *l)
{
    return w->sentinels ? watch_server(w, l->process) : &w->server[l->server];
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
    list_init(&l->held);
    list_init(&l->ready);
    list_init(&l->cleaners);
    list_init(&l->slots);
    backoff_init(&l->reconnect, RECONNECT_FIRST,
        earlier(RECONNECT_MAX, w->setting.timeout_ns / 2), roll(w, NEVER));
    alarm_init(w, &l->alarm, link_rings);
}

void link_push_slot(struct link *l, struct slot slot)
{
    struct slot *s = malloc(sizeof(*s));
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
    while (!list_empty(&l->cleaners))
        cleaner_free(list_entry(l->cleaners.next, struct cleaner, node));
    alarm_end(w, &l->alarm);
}

static void request_fail(struct request *r, enum fault fault, bool unsure)
{
    r->state = REQUEST_FAILED;
    r->fault = fault;
    r->unsure = unsure;
    r->granted = false;
    list_append(&r->worker->process->failed, &r->node);
}

void request_submit(struct world *w, struct request *r)
{
    if (r->state != REQUEST_IDLE) {
        checker_twice(w, r->worker);
        return;
    }
    r->sent_at = 0;
    struct link *l = &r->worker->process->link[r->server];
    r->unsure = false;
    if (!r->message.earlier_token_possible)
        r->given_up = l->given_up;
    r->state = REQUEST_WAITING;
    list_append(&l->waiting, &r->node);
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

static struct cancelled describe(
    struct link *l, const struct request *r, enum cancel_stage stage, bool undo)
{
    struct cleaner *known = cleaner_in_use(l, r->message.token);
    return (struct cancelled){
        .verb = message_verb(r->message.kind),
        .stage = stage,
        .undo = undo,
        .may_hold = r->message.held,
        .writes = true,
        .compares = true,
        .never_sent = r->sent_at == 0,
        .unsure = r->unsure,
        .cleanup = known ? &known->cleanup : NULL,
    };
}

static void drop_slot(struct link *l, struct slot *slot,
    enum cleanup_cause cause, struct cleaner *k)
{
    slot->request = NULL;
    slot->cleaner = cause == CLEANUP_TOKEN ? NULL : k;
    if (cause == CLEANUP_RELEASE_SENT) {
        slot->kind = SLOT_DELETE;
    } else {
        slot->kind = SLOT_CANCELLED;
        l->dropped++;
    }
}

static bool cancel_sent(
    struct world *w, struct link *l, struct request *r, bool undo)
{
    struct cancelled what = describe(l, r, CANCEL_SENT, undo);
    struct cancellation c = cancel_request(&what);
    struct cleaner *k = cleaner_begin(w, l, &r->message, c.cause);
    if (c.ends_use)
        link_end_use(w, l, &r->message);
    r->state = REQUEST_IDLE;
    drop_slot(l, slot_of(l, r), c.cause, k);
    if (k && k->cleanup.state == CLEANUP_IDLE)
        cleaner_send(w, l, k);
    return c.changed_nothing;
}

bool request_abandon(struct world *w, struct request *r, bool undo)
{
    struct link *l = &r->worker->process->link[r->server];
    if (r->state == REQUEST_SENT)
        return cancel_sent(w, l, r, undo);
    bool waits = r->state == REQUEST_WAITING;
    r->unsure =
        r->unsure || r->state == REQUEST_AWAITS_REPLICAS; /* it was applied */
    if (r->state != REQUEST_IDLE)
        list_remove(&r->node);
    r->state = REQUEST_IDLE;
    struct cancelled what =
        describe(l, r, waits ? CANCEL_UNSENT : CANCEL_ENDED, undo);
    struct cancellation c = cancel_request(&what);
    cleaner_begin(w, l, &r->message, c.cause);
    if (c.ends_use)
        link_end_use(w, l, &r->message);
    return c.changed_nothing;
}

/* ------------------------------------------------------------------- ends */

static void cut_cleanup(struct world *w, struct link *l, struct cleaner *k)
{
    cleanup_connection_lost(
        &k->cleanup, (int64_t)l->client_id, l->run_id, w->now);
}

static void cut_slot(struct world *w, struct link *l, struct slot *slot)
{
    if (slot->kind == SLOT_REQUEST) {
        struct request *r = slot->request;
        struct cancelled lost = describe(l, r, CANCEL_LOST, false);
        struct cleaner *k =
            cleaner_begin(w, l, &r->message, cancel_request(&lost).cause);
        if (k)
            cut_cleanup(w, l, k);
        request_fail(r, FAULT_UNREACHABLE, true);
    } else if (slot->cleaner) {
        cut_cleanup(w, l, slot->cleaner);
    }
}

/* Whether replicas have it is not known. refused: nor will it be. */
static void fail_awaiting_replicas(
    struct world *w, struct link *l, enum fault fault, bool refused)
{
    struct list *node;
    while ((node = list_pop(&l->held))) {
        struct request *r = list_entry(node, struct request, node);
        request_fail(r, fault, true);
        r->granted = refused;
        if (refused)
            checker_void(w, r->message.token);
    }
}

static void fail_waiting(struct link *l, enum fault fault)
{
    struct list *node;
    while ((node = list_pop(&l->waiting)))
        request_fail(list_entry(node, struct request, node), fault, false);
}

static void go_down(struct world *w, struct link *l)
{
    l->state = LINK_DOWN;
    if (w->sentinels)
        watch_lost(w, l->process);
}

static void connect_failed(struct world *w, struct link *l, enum fault fault)
{
    go_down(w, l);
    l->not_before = w->now + backoff_next(&l->reconnect);
    fail_waiting(l, fault);
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
    fail_awaiting_replicas(w, l, FAULT_UNREACHABLE, false);
    conn_leave(w, l->conn, linger);
    l->conn = NULL;
    l->wait_due = false;
    l->waits = 0;
    l->dropped = 0;
    go_down(w, l);
    l->not_before = w->now;
    if (!was_up)
        connect_failed(w, l, FAULT_UNREACHABLE);
}

/* Has it to wait until the Sentinels name this server again? */
static bool must_await_sentinels(const struct world *w, const struct request *r)
{
    const struct link *l = &r->worker->process->link[r->server];
    return w->sentinels &&
           weigh_needs_confirmation(message_verb(r->message.kind)) &&
           !weigh_confirmed(&l->eligibility, w->now);
}

void link_leave(struct world *w, struct link *l)
{
    if (l->conn)
        link_lost(w, l, roll(w, w->setting.linger_ns));
    else if (l->state == LINK_DIALLING)
        go_down(w, l);
    l->not_before = w->now;
}

void link_not_found(struct world *w, struct link *l, enum fault fault)
{
    l->held_back = false;
    if (l->state == LINK_DOWN && !watch_located(w, l->process)) {
        connect_failed(w, l, fault);
        return;
    }
    struct list *node = l->waiting.next, *next;
    for (; node != &l->waiting; node = next) {
        next = node->next;
        struct request *r = list_entry(node, struct request, node);
        if (!must_await_sentinels(w, r))
            continue;
        list_remove(&r->node);
        request_fail(r, fault, r->unsure);
    }
}

/* ---------------------------------------------------------------- replies */

static struct eligibility_terms terms_of(const struct world *w)
{
    return (struct eligibility_terms){.max_ttl_ms = w->setting.max_ttl_ms,
        .drift_ppm = w->setting.drift_ppm,
        .several_servers = w->options.servers > 1,
        .guard = true,
        .failover = w->setting.failover,
        .sentinels = w->sentinels};
}

static void id_text(char text[LINEAGE_ID], uint64_t id)
{
    snprintf(text, LINEAGE_ID, "%016llx", (unsigned long long)id);
}

static void alive(struct link *l, const struct message *m)
{
    char known[LINEAGE_ID] = "", replid[LINEAGE_ID] = "";
    id_text(known, l->known);
    id_text(replid, m->replid);
    const struct server_info info = {.role = m->replica ? "slave" : "master",
        .replid = replid,
        .replicas = (int)m->replicas};
    l->asks_alive = false;
    if (lineage_goes_on(known, (int)l->replicas, &info))
        l->alive_at = l->sign_at;
    else
        l->elsewhere = true;
    l->replicas = m->replicas;
}

static void judge(struct world *w, struct link *l, const struct message *m)
{
    char replid[LINEAGE_ID] = "", replid2[LINEAGE_ID] = "";
    struct eligibility_terms terms = terms_of(w);
    if (m->replid)
        id_text(replid, m->replid);
    if (m->replid2)
        id_text(replid2, m->replid2);
    struct server_info info = {.run_id = l->run_id,
        .role = m->replica ? "slave" : "master",
        .uptime_s = (int64_t)m->uptime_s,
        .replid = replid,
        .replid2 = replid2,
        .primary_s = m->primary_s,
        .named_s = eligibility_named_s(&l->eligibility, w->now),
        .clock_low_ns = m->clock_ns - (int64_t)w->now,
        .clock_high_ns = m->clock_ns + 1000 - (int64_t)m->sent_at};
    eligibility_judge(&l->eligibility, &info, &terms, false, w->now);
    l->known = m->replica ? 0 : m->replid;
    l->replicas = m->replicas;
    int64_t primary_s =
        eligibility_coordinated_s(&l->eligibility, &terms, w->now);
    if (primary_s >= 0) {
        link_push_slot(l, (struct slot){.kind = SLOT_MARK, .sent_at = w->now});
        conn_send(w, l->conn,
            &(struct message){.kind = MESSAGE_MARK,
                .replid = m->replid,
                .number = (uint64_t)primary_s * 1000});
    }
    if (!eligibility_votes(&l->eligibility, w->now))
        note(w, "c%llu sees s%llu in quarantine", NULL, l->process->index,
            l->server);
}

void link_hear_former(struct world *w, struct link *l, const struct message *m)
{
    char run_id[24], replid[LINEAGE_ID] = "", replid2[LINEAGE_ID] = "";
    snprintf(run_id, sizeof(run_id), "%016llx", (unsigned long long)m->run_id);
    if (m->replid)
        id_text(replid, m->replid);
    if (m->replid2)
        id_text(replid2, m->replid2);
    const struct server_info info = {.run_id = run_id,
        .role = m->replica ? "slave" : "master",
        .replid = replid,
        .replid2 = replid2,
        .clock_low_ns = m->clock_ns - (int64_t)w->now};
    eligibility_hear_former(&l->eligibility, &info);
}

static void shaken(struct world *w, struct link *l, const struct message *m)
{
    l->state = LINK_UP;
    l->up_since = w->now;
    l->client_id = m->number;
    l->kind_by_name = false;
    snprintf(
        l->run_id, sizeof(l->run_id), "%016llx", (unsigned long long)m->run_id);
    judge(w, l, m);
}

static bool too_late(const struct world *w, const struct message *m)
{
    return m->kind != MESSAGE_TELL && limit_passed(m->not_after, w->now);
}

static bool needs_copies(const struct world *w, const struct request *r)
{
    return w->setting.wait_replicas > 0 &&
           verb_traits[message_verb(r->message.kind)].needs_copies;
}

/* Does what it says count? False: *other does. */
static bool counts(struct world *w, struct link *l, const struct request *r,
    const struct outcome *outcome, struct outcome *other)
{
    const struct copies_terms terms = {.replicas = w->setting.wait_replicas};
    enum verb_kind verb = message_verb(r->message.kind);
    if (!weigh_copies(&terms, verb, outcome, other)) {
        checker_void(w, r->message.token);
        return false;
    }
    const struct eligibility *e = &l->eligibility;
    bool does = weigh_outcome(e, verb, outcome, l->alive_at, w->now, other) &&
                weigh_extension(e, verb, outcome,
                    life_lasts_until(&r->worker->life), other);
    if (!does && fault_is_unconfirmed(other->fault))
        checker_void(w, r->message.token);
    if (!does && eligibility_recheck(&l->eligibility, w->now))
        l->elsewhere = true;
    return does;
}

static void complete(
    struct world *w, struct link *l, struct request *r, const struct message *m)
{
    struct outcome outcome = m->outcome, other;
    outcome.connection = l->number;
    outcome.earlier_token_may_remain = outcome.kind == OUTCOME_BUSY &&
                                       r->message.earlier_token_possible &&
                                       cleaners_owe(l, r);
    r->state = REQUEST_IDLE;
    r->message.number = m->number;
    r->message.stood = m->stood;
    r->message.stood_until = m->stood_until;
    r->message.gap = m->gap;
    if (r->message.asks_kind && outcome.kind != OUTCOME_FAULT)
        l->kind_by_name = !m->kind_unknown;
    r->message.wrote = m->wrote;
    r->message.epoch = m->epoch;
    r->message.once.record = m->once.record;
    r->message.once.before = m->once.before;
    if (r->message.kind == MESSAGE_RELEASE ||
        (r->message.kind == MESSAGE_TELL &&
            r->message.once.verdict != ONCE_CLEAR))
        cleaner_release_answered(w, l, &r->message, &outcome);
    if (outcome.kind == OUTCOME_FAULT && fault_wants_reconnect(outcome.fault))
        l->elsewhere = true;
    bool does = counts(w, l, r, &outcome, &other);
    other.connection = l->number;
    handle_outcome(w, r, does ? &outcome : &other);
}

static void take_slot(
    struct world *w, struct link *l, struct request *r, bool first)
{
    if (first)
        r->sent_at = r->message.sent_at = w->now;
    r->message.kind_by_name = l->kind_by_name;
    link_push_slot(l,
        (struct slot){.kind = SLOT_REQUEST, .request = r, .sent_at = w->now});
    conn_send(w, l->conn, &r->message);
    l->wait_due = l->wait_due || needs_copies(w, r);
    uint32_t ttl_ms = r->message.ttl_ms;
    if (ttl_ms == 0 || (ttl_ms > l->shortest_ms && w->now < l->shortest_until))
        return;
    l->shortest_ms = ttl_ms;
    l->shortest_until = w->now + ms_to_ns(ttl_ms);
}

/* The script is sent itself. A WAIT of its own follows: what the one behind its
 * name says is about other writes. */
static void say_again(struct world *w, struct link *l, struct request *r)
{
    r->message.evals = true;
    if (too_late(w, &r->message)) {
        request_fail(r, FAULT_TIMEOUT, false);
        return;
    }
    r->early = (struct copies){.known = false};
    take_slot(w, l, r, false);
}

static void answered(
    struct world *w, struct link *l, struct request *r, const struct message *m)
{
    if (m->no_script) {
        say_again(w, l, r);
        return;
    }
    bool holds = needs_copies(w, r) && outcome_wrote(&m->outcome);
    if (!holds) {
        complete(w, l, r, m);
        return;
    }
    r->reply = *m;
    r->reply.outcome.copies = r->early;
    if (r->early.known && !guarded_here(SIM_GUARD_OWN_WAIT)) {
        complete(w, l, r, &r->reply);
        return;
    }
    r->state = REQUEST_AWAITS_REPLICAS;
    list_append(&l->held, &r->node);
}

static void wait_answered(
    struct world *w, struct link *l, const struct message *m)
{
    struct list *node;
    l->waits--;
    if (m->outcome.kind == OUTCOME_FAULT) {
        l->elsewhere = l->elsewhere || fault_wants_reconnect(m->outcome.fault);
        fail_awaiting_replicas(
            w, l, m->outcome.fault, !fault_wants_reconnect(m->outcome.fault));
        return;
    }
    for (node = l->slots.next; node != &l->slots; node = node->next) {
        struct slot *slot = list_entry(node, struct slot, node);
        if (slot->kind == SLOT_REQUEST && slot->request->message.evals)
            slot->request->early = m->outcome.copies;
    }
    while ((node = list_pop(&l->held))) {
        struct request *r = list_entry(node, struct request, node);
        r->reply.outcome.copies = m->outcome.copies;
        list_append(&l->ready, &r->node);
    }
    while ((node = list_pop(&l->ready))) {
        struct request *r = list_entry(node, struct request, node);
        complete(w, l, r, &r->reply);
    }
}

void link_heard(struct world *w, struct link *l, const struct message *m)
{
    struct slot *slot = pop_slot(l);
    struct slot was = *slot;
    free(slot);
    l->heard_at = w->now;
    if (was.kind != SLOT_HELLO)
        backoff_reset(&l->reconnect);
    switch (was.kind) {
    case SLOT_HELLO:
        shaken(w, l, m);
        break;
    case SLOT_ALIVE:
        alive(l, m);
        break;
    case SLOT_MARK:
        break;
    case SLOT_WAIT:
        wait_answered(w, l, m);
        break;
    case SLOT_REQUEST:
        answered(w, l, was.request, m);
        break;
    case SLOT_CANCELLED:
        l->dropped--;
        if (was.cleaner)
            cleaner_heard(w, l, &was, m);
        break;
    case SLOT_KILL:
    case SLOT_DELETE:
        cleaner_heard(w, l, &was, m);
        break;
    }
}

/* ------------------------------------------------------------------ acting */

static bool hangs(const struct world *w, const struct link *l)
{
    if (l->dropped < DROPPED_FEW)
        return false;
    struct slot *oldest = list_entry(l->slots.next, struct slot, node);
    return w->now >=
           oldest->sent_at + earlier(DROPPED_PATIENCE, w->setting.timeout_ns);
}

static void send_request(struct world *w, struct link *l, struct request *r)
{
    struct outcome refusal;
    if (!weigh_may_send(
            &l->eligibility, message_verb(r->message.kind), w->now, &refusal)) {
        if (eligibility_recheck(&l->eligibility, w->now))
            l->elsewhere = true;
        request_fail(r, refusal.fault, false);
        return;
    }
    if (hangs(w, l) || too_late(w, &r->message)) {
        request_fail(r, FAULT_TIMEOUT, false);
        return;
    }
    r->state = REQUEST_SENT;
    r->message.once.keeps_key = limit_passed(r->message.not_after, w->now);
    r->early = (struct copies){.known = false};
    take_slot(w, l, r, true);
}

static void dialled(struct world *w, struct link *l)
{
    struct model_server *s = server_of(w, l);
    if (s->down || (w->sentinels && sentinels_parted(w, l->process, s))) {
        connect_failed(w, l, FAULT_UNREACHABLE);
        return;
    }
    l->state = LINK_SHAKING;
    l->conn = conn_open(w, s, l->process, l);
    l->number++;
    l->client_id = 0;
    l->run_id[0] = '\0';
    link_push_slot(l, (struct slot){.kind = SLOT_HELLO, .sent_at = w->now});
    l->alive_at = l->heard_at = w->now;
    l->asks_alive = l->elsewhere = false;
    const struct eligibility_terms terms = terms_of(w);
    conn_send(w, l->conn,
        &(struct message){.kind = MESSAGE_HELLO,
            .sent_at = w->now,
            .known = l->known,
            .needed_s = eligibility_needed_s(&terms)});
}

static uint64_t stale_at(const struct world *w, const struct link *l)
{
    if (list_empty(&l->slots))
        return NEVER;
    struct slot *oldest = list_entry(l->slots.next, struct slot, node);
    return oldest->sent_at + w->setting.patience_ns;
}

static void ask_alive(struct world *w, struct link *l)
{
    if (l->asks_alive || !lineage_wants_sign(l->alive_at, w->now))
        return;
    l->asks_alive = true;
    l->sign_at = lineage_alive_at(l->heard_at, w->now);
    link_push_slot(l, (struct slot){.kind = SLOT_ALIVE, .sent_at = w->now});
    conn_send(w, l->conn,
        &(struct message){.kind = MESSAGE_ALIVE, .known = l->known});
}

/* The first that may be sent, of those that wait; NULL: there is none. */
static struct request *take_next(const struct world *w, struct link *l)
{
    struct list *node = l->waiting.next;
    for (; node != &l->waiting; node = node->next) {
        struct request *r = list_entry(node, struct request, node);
        if (must_await_sentinels(w, r))
            continue;
        list_remove(node);
        return r;
    }
    return NULL;
}

static void send_waiting(struct world *w, struct link *l)
{
    struct request *r;
    l->held_back = false;
    if (l->waits > 0 || list_empty(&l->waiting))
        return;
    if (w->setting.failover) {
        ask_alive(w, l);
        if (!lineage_is_current(l->alive_at, w->now))
            return;
    }
    while ((r = take_next(w, l)))
        send_request(w, l, r);
    l->held_back = !list_empty(&l->waiting);
}

uint32_t link_wait_ms(const struct world *w, uint32_t ttl_ms)
{
    uint64_t ms = later(ttl_ms / WAITS_PER_TTL, WAIT_MIN_MS);
    ms = earlier(ms, WAIT_MAX_MS);
    if (w->setting.wait_replicas == 0)
        return 0;
    return (uint32_t)earlier(ms, w->setting.timeout_ns / MS / 3);
}

static void ask_copies(struct world *w, struct link *l)
{
    l->wait_due = false;
    l->waits++;
    link_push_slot(l, (struct slot){.kind = SLOT_WAIT, .sent_at = w->now});
    conn_send(w, l->conn,
        &(struct message){.kind = MESSAGE_WAIT,
            .number = w->setting.wait_replicas,
            .ttl_ms = link_wait_ms(w, l->shortest_ms)});
}

static void send_due(struct world *w, struct link *l)
{
    struct list *node = l->cleaners.next, *next;
    for (; node != &l->cleaners; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, node);
        if (k->cleanup.state == CLEANUP_IDLE && k->cleanup.next_try <= w->now)
            cleaner_send(w, l, k);
    }
    if (l->elsewhere)
        return;
    send_waiting(w, l);
    if (l->wait_due)
        ask_copies(w, l);
}

/* When it connects, for requests or for cleanups. */
static uint64_t wants_at(struct world *w, struct link *l)
{
    if (!list_empty(&l->waiting))
        return later(w->now, l->not_before);
    return later(cleaners_due(w, l), l->not_before);
}

uint64_t link_wants_at(struct world *w, struct link *l)
{
    return l->state == LINK_DOWN ? wants_at(w, l) : NEVER;
}

void link_step(struct world *w, struct link *l)
{
    uint64_t due = cleaners_due(w, l);
    bool wanted = !list_empty(&l->waiting) || due <= w->now;
    if (l->state >= LINK_SHAKING && w->now >= stale_at(w, l))
        link_lost(w, l, roll(w, w->setting.linger_ns));
    if (l->state == LINK_UP && l->elsewhere && list_empty(&l->slots))
        link_lost(w, l, 0);
    bool located = !w->sentinels || watch_located(w, l->process);
    if (l->state == LINK_DOWN && w->now >= l->not_before && wanted && located) {
        l->state = LINK_DIALLING;
        l->since = w->now;
        l->dialled_at = w->now + travel(w, server_of(w, l));
    }
    if (l->state == LINK_DIALLING && w->now >= l->dialled_at)
        dialled(w, l);
    if (l->state == LINK_UP)
        send_due(w, l);
    uint64_t at = stale_at(w, l);
    if (l->state == LINK_DIALLING)
        at = l->dialled_at;
    else if (l->state == LINK_DOWN && !located) /* the watch goes on */
        at = NEVER;
    else if (l->state == LINK_DOWN)
        at = wants_at(w, l);
    else if (l->state == LINK_UP)
        at = earlier(at, cleaners_due(w, l));
    alarm_set(w, &l->alarm, at);
}
