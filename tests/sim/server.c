/* SPDX-License-Identifier: MIT */
/*
 * Keeps: each command is carried out whole or not at all, on what stands at
 * that moment by this server's clock; what is carried out is told to the
 * checker, which knows what no client can know.
 */
#include "sim/server.h"

#include <stddef.h>
#include <string.h>

#include "core/lease.h"
#include "model/guard.h"
#include "sim/network.h"
#include "sim/promotion.h"
#include "sim/replication.h"
#include "sim/world.h"

/* A bit of its scripts that is of no kind of message. */
#define KNOWS_HOLD_BACK (1u << 31)
#define DAY_MS (INT64_C(86400000))
#define EPOCH (20000 * DAY_MS * (int64_t)MS) /* wall time when now is 0 */

static int64_t clock_shows(const struct world *w, const struct model_server *s)
{
    int64_t passed = (int64_t)(w->now - s->clock_at);
    return s->clock_ns + passed + passed / 1000000 * s->rate_ppm +
           passed % 1000000 * s->rate_ppm / 1000000;
}

/* Goes on from what it was rounded to: each reading is part of the history. */
static int64_t clock_ns(const struct world *w, struct model_server *s)
{
    s->clock_ns = clock_shows(w, s);
    s->clock_at = w->now;
    return s->clock_ns;
}

int64_t server_clock_ms(const struct world *w, struct model_server *s)
{
    return clock_ns(w, s) / (int64_t)MS;
}

int64_t server_clock_us(const struct world *w, struct model_server *s)
{
    return clock_ns(w, s) / 1000;
}

uint64_t server_uptime_s(const struct world *w, struct model_server *s)
{
    int64_t now_s = server_clock_ms(w, s) / 1000;
    int64_t then_s = s->started_ms / 1000;
    return now_s > then_s ? (uint64_t)(now_s - then_s) : 0;
}

int64_t server_clock_error(const struct world *w, struct model_server *s)
{
    return clock_ns(w, s) - EPOCH - (int64_t)w->now;
}

void server_step_clock(struct world *w, struct model_server *s, int64_t by_ns)
{
    s->clock_ns = clock_ns(w, s) + by_ns;
    if (by_ns < 0)
        s->stepped_back_ms -= by_ns / (int64_t)MS;
    s->stepped_at = w->now;
    if (by_ns < 0)
        checker_clock_set_back(w);
    else
        checker_line_forgets(w);
}

static void new_process(struct world *w, struct model_server *s)
{
    s->run_id = 1 + roll(w, UINT64_MAX - 1);
    s->scripts = 0;
    s->started_ms = server_clock_ms(w, s);
    s->next_client = 1;
}

/* A line has room for many, and few wait in most. */
void server_copy_data(struct data *to, const struct data *from)
{
    memcpy(to->key, from->key, sizeof(to->key));
    memcpy(to->fence, from->fence, sizeof(to->fence));
    memcpy(to->record, from->record, sizeof(to->record));
    to->marker = from->marker;
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        const struct queue *q = &from->queue[i];
        size_t places = q->count * sizeof(q->place[0]);
        memcpy(&to->queue[i], q, offsetof(struct queue, place) + places);
        const struct holders *h = &from->holders[i];
        size_t holders = h->count * sizeof(h->holder[0]);
        memcpy(&to->holders[i], h, offsetof(struct holders, holder) + holders);
    }
}

void server_save(struct model_server *s)
{
    server_copy_data(&s->saved, &s->data);
}

void server_rewind(struct world *w, struct model_server *s)
{
    server_copy_data(&s->data, &s->saved);
    checker_rewound(w, s);
    s->forgot_at = w->now;
    checker_line_forgets(w);
}

static void up_again(struct world *w, struct alarm *alarm)
{
    struct model_server *s = list_entry(alarm, struct model_server, up_again);
    s->down = false;
    if (s->restart == RESTART_EMPTY)
        s->data = (struct data){0};
    else if (s->restart == RESTART_REWOUND)
        server_copy_data(&s->data, &s->saved);
    new_process(w, s);
    if (w->setting.failover)
        promotion_restarted(w, s, s->restart != RESTART_EMPTY);
    if (s->restart == RESTART_REWOUND)
        checker_rewound(w, s);
    replication_cut(w, s, s->restart != RESTART_KEEPING);
    if (s->restart != RESTART_KEEPING) {
        s->forgot_at = w->now;
        checker_line_forgets(w);
    }
    note(w, "s%llu is up again, run_id %llu,",
        s->restart == RESTART_EMPTY     ? "empty"
        : s->restart == RESTART_REWOUND ? "with what it had saved"
                                        : "with its data",
        s->index, s->run_id % 10000);
}

void server_start(struct world *w, struct model_server *s, unsigned index)
{
    s->index = index;
    s->clock_at = w->now;
    list_init(&s->conns);
    alarm_init(w, &s->up_again, up_again);
    s->clock_ns = EPOCH + (int64_t)w->now;
    new_process(w, s);
    s->started_ms -= DAY_MS;
    if (w->setting.failover)
        promotion_start(w, s);
    replication_start(w, s);
}

void server_end(struct world *w, struct model_server *s)
{
    while (!list_empty(&s->conns))
        conn_free(w, list_entry(s->conns.next, struct conn, node));
    alarm_end(w, &s->up_again);
    replication_end(w, s);
    if (w->setting.failover && !s->former)
        promotion_end(w, s);
}

void server_drop_conns(struct world *w, struct model_server *s)
{
    struct list *node = s->conns.next, *next;
    for (; node != &s->conns; node = next) {
        next = node->next;
        conn_drop(w, list_entry(node, struct conn, node), chance(w, 50));
    }
}

void server_crash(
    struct world *w, struct model_server *s, enum restart how, uint64_t away)
{
    server_drop_conns(w, s);
    replication_cut(w, s, false);
    s->down = true;
    s->restart = how;
    s->stopped_until = 0;
    alarm_set(w, &s->up_again, w->now + away);
}

void server_thaw(struct world *w, struct model_server *s)
{
    s->stopped_until = w->now;
    for (struct list *n = s->conns.next; n != &s->conns; n = n->next) {
        struct conn *c = list_entry(n, struct conn, node);
        if (list_empty(&c->up.messages))
            continue;
        struct message *m =
            list_entry(c->up.messages.next, struct message, node);
        alarm_set(w, &c->up.alarm, m->arrives);
    }
}

/* ---------------------------------------------------------------- commands */

struct key *server_key(
    const struct world *w, struct model_server *s, unsigned name)
{
    struct key *key = &s->data.key[name];
    if (key->token != 0 && server_clock_ms(w, s) >= key->until_ms)
        key->token = 0;
    return key;
}

uint64_t server_value(
    const struct world *w, struct model_server *s, unsigned name)
{
    return server_key(w, s, name)->token;
}

bool server_has(const struct world *w, struct model_server *s, unsigned name,
    uint64_t token)
{
    return server_value(w, s, name) == token ||
           (w->setting.permits && holders_peek(w, s, name, token));
}

int64_t server_peek_ms(const struct world *w, const struct model_server *s)
{
    return clock_shows(w, s) / (int64_t)MS;
}

uint64_t server_peek(
    const struct world *w, const struct model_server *s, unsigned name)
{
    const struct key *key = &s->data.key[name];
    bool stands = key->token != 0 && server_peek_ms(w, s) < key->until_ms;
    return stands ? key->token : 0;
}

static int64_t left_ms(
    const struct world *w, struct model_server *s, const struct key *key)
{
    return key->until_ms - server_clock_ms(w, s);
}

/* The key that is not a string, but for those commands that any can read. */
static bool has_holders(
    const struct world *w, struct model_server *s, unsigned name)
{
    return holders_of(w, s, name)->count > 0;
}

/* The next number: more than the last one, and not behind the clock, so that
 * numbers go on growing after the last one was forgotten. */
uint64_t server_next_fence(const struct world *w, struct model_server *s,
    unsigned name, uint64_t least)
{
    uint64_t *fence = &s->data.fence[name];
    uint64_t floor = guarded_here(SIM_GUARD_FENCE_FLOOR)
                         ? (uint64_t)(clock_ns(w, s) / 1000)
                         : 0;
    *fence = later(later(*fence + 1, least), floor);
    return *fence;
}

/* The script hold_back; or EVALSHA fails, and nothing is known. */
static void ask_kind(struct world *w, struct model_server *s, struct message *m)
{
    bool forgets = w->setting.replicated && w->setting.permits;
    m->kind_unknown =
        m->kind_by_name && forgets && !(s->scripts & KNOWS_HOLD_BACK);
    if (m->kind_unknown) {
        m->outcome.left_ms = LEFT_UNKNOWN;
        return;
    }
    s->scripts |= KNOWS_HOLD_BACK;
    m->outcome.several_holders = has_holders(w, s, m->name);
    queue_hold_back(w, s, m);
}

static void acquire_here(
    struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    if (key->token != 0 || has_holders(w, s, m->name)) {
        m->outcome.kind = OUTCOME_BUSY;
        if (m->want_left)
            m->outcome.left_ms = holders_look(w, s, m->name).left_ms;
        if (m->asks_kind)
            ask_kind(w, s, m);
        return;
    }
    key->token = m->token;
    key->until_ms = server_clock_ms(w, s) + m->ttl_ms;
    m->number = server_next_fence(w, s, m->name, 0);
    m->outcome.kind = OUTCOME_GRANTED;
    checker_set(w, s, m);
    checker_outside(w, m->name);
    if (chance(w, 10))
        server_save(s);
}

static void extend_here(
    struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (key->token != m->token)
        return;
    int64_t until = server_clock_ms(w, s) + m->ttl_ms;
    if (until > key->until_ms || !guarded(GUARD_SHORTEN))
        key->until_ms = until;
    m->outcome.kind = OUTCOME_MINE;
    m->outcome.left_ms = left_ms(w, s, key);
    checker_vouched(w, s, m, m->ttl_ms);
}

static void release_here(
    struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    bool compared = guarded_here(SIM_GUARD_COMPARE);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (key->token == 0 || (compared && key->token != m->token)) {
        if (m->channel && queue_leave(w, s, m))
            m->outcome.kind = OUTCOME_MINE;
        return;
    }
    m->outcome.kind = OUTCOME_MINE;
    checker_deleted(w, s, m, key->token);
    key->token = 0;
    if (!m->plain)
        queue_hand_over(w, s, m, &(struct state){.is = KEY_FREE});
}

static void look_here(
    struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (key->token != m->token)
        return;
    m->outcome.kind = OUTCOME_MINE;
    m->outcome.left_ms = left_ms(w, s, key);
    checker_vouched(w, s, m, (uint32_t)m->outcome.left_ms);
}

static void inspect_here(
    struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    m->outcome.kind = state.is != KEY_FREE ? OUTCOME_SEEN : OUTCOME_FREE;
    if (state.is != KEY_FREE)
        m->outcome.left_ms = state.left_ms;
}

static void cap_here(struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (key->token != m->token)
        return;
    key->until_ms = server_clock_ms(w, s) + m->ttl_ms;
    m->outcome.kind = OUTCOME_MINE;
    checker_capped(w, s, m);
}

static void raise_here(
    struct world *w, struct model_server *s, struct message *m)
{
    uint64_t *fence = &s->data.fence[m->name];
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (server_key(w, s, m->name)->token != m->token)
        return;
    if (m->number == 0)
        server_next_fence(w, s, m->name, 0);
    *fence = later(*fence, m->number);
    m->number = *fence;
    m->outcome.kind = OUTCOME_MINE;
}

static void subscribe_here(
    struct world *w, struct model_server *s, struct message *m)
{
    (void)s;
    m->outcome.kind = OUTCOME_MINE;
    if (w->setting.listening == LISTENING_DENIED) {
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = FAULT_NO_PERMISSION;
    } else if (w->setting.listening == LISTENING_ELSEWHERE) {
        m->channel = 0;
    }
}

/* Has a wait in line brought this lock to a BEGIN that has not arrived? Then
 * nobody relies on the key yet, and it may be removed. */
static bool awaits_begin(
    const struct world *w, const struct model_server *s, unsigned name)
{
    uint64_t token = s->data.key[name].token;
    if (s->data.record[name].token == token)
        return false;
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *k = &w->process[i].worker[j];
            if (k->token == token && k->life.running &&
                k->life.call == CALL_BEGIN)
                return true;
        }
    }
    return false;
}

bool server_set_outside(
    struct world *w, struct model_server *s, unsigned name, uint32_t ttl_ms)
{
    struct key *key = server_key(w, s, name);
    struct worker nobody = {.process = &w->process[0], .name = name};
    if (key->token != 0 || has_holders(w, s, name))
        return false;
    key->token = checker_token(w, &nobody);
    key->until_ms = server_clock_ms(w, s) + ttl_ms;
    checker_left(w, key->token);
    checker_facts(&w->checker, key->token)->outside = true;
    checker_outside(w, name);
    note(w, "a stranger sets n%llu t%llu", NULL, name, key->token);
    return true;
}

bool server_intrude(
    struct world *w, struct model_server *s, unsigned name, uint32_t ttl_ms)
{
    struct key *key = server_key(w, s, name);
    if (key->token != 0 && !awaits_begin(w, s, name))
        return false;
    key->token = 0;
    return server_set_outside(w, s, name, ttl_ms);
}

/* What had come from it and was not read is thrown away. */
static void kill_here(
    struct world *w, struct model_server *s, const struct message *m)
{
    for (struct list *node = s->conns.next; node != &s->conns;
         node = node->next) {
        struct conn *c = list_entry(node, struct conn, node);
        if (c->id == m->number && c->run_id == s->run_id) {
            conn_drop(w, c, false);
            return;
        }
    }
}

/* For the checker. */
static void note_answer(
    struct world *w, struct model_server *s, struct message *m)
{
    const struct key *key = server_key(w, s, m->name);
    if (m->outcome.kind == OUTCOME_GRANTED)
        checker_answered(w, s, m);
    if (m->outcome.kind != OUTCOME_BUSY)
        return;
    if (m->held)
        checker_lost_hand_over(w, s, m);
    struct state state = holders_look(w, s, m->name);
    m->stood =
        state.is == KEY_SHARED ? checker_other_holder(w, s, m) : key->token;
    m->gap = state.is == KEY_FREE && queue_in_gap(w, s, m->name);
    if (m->gap)
        checker_gap_heard(w, m->name);
    if (m->held_back) { /* whoever holds it */
        m->stood = 0;
        m->gap = true;
    }
    m->stood_until = w->now + ms_to_ns((uint64_t)(m->gap ? m->outcome.left_ms
                                                  : state.is == KEY_SHARED
                                                      ? state.left_ms
                                                      : left_ms(w, s, key)));
}

static bool refuses(const struct world *w, const struct model_server *s,
    const struct message *m)
{
    return w->now < s->refusing_until &&
           (s->refusal != FAULT_FULL || m->kind == MESSAGE_ACQUIRE ||
               m->kind == MESSAGE_TAKE || m->kind == MESSAGE_JOIN ||
               m->kind == MESSAGE_STAY || m->kind == MESSAGE_BEGIN ||
               m->kind == MESSAGE_TELL || m->kind == MESSAGE_UNBEGIN);
}

static void wait_here(const struct model_server *s, struct message *m)
{
    m->outcome.kind = OUTCOME_MINE;
    if (s->replica) { /* UNBLOCKED */
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = FAULT_NOT_PRIMARY;
    }
}

/* EVALSHA of a script that it does not know. */
static bool knows_script(
    const struct world *w, struct model_server *s, const struct message *m)
{
    bool scripted = m->kind == MESSAGE_EXTEND || m->kind == MESSAGE_RAISE ||
                    m->kind == MESSAGE_TAKE || m->kind == MESSAGE_BEGIN ||
                    m->kind == MESSAGE_TELL;
    if (!w->setting.replicated || !scripted)
        return true;
    if (m->evals)
        s->scripts |= 1u << m->kind;
    return s->scripts & 1u << m->kind;
}

static bool has_written(const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_LOOK:
    case MESSAGE_INSPECT:
    case MESSAGE_LOOK_ONCE:
    case MESSAGE_SUBSCRIBE:
        return false;
    case MESSAGE_JOIN:
    case MESSAGE_STAY:
    case MESSAGE_UNBEGIN:
        return true;
    case MESSAGE_TAKE:
        return m->served || outcome_wrote(&m->outcome);
    case MESSAGE_BEGIN: /* it may give a lock back */
        return m->outcome.kind != OUTCOME_BUSY;
    case MESSAGE_TELL: /* a late one is counted */
        return m->outcome.kind == OUTCOME_MINE || m->once.verdict == ONCE_DONE;
    default:
        return outcome_wrote(&m->outcome);
    }
}

static void carry_out(
    struct world *w, struct model_server *s, struct message *m)
{
    static void (*const commands[])(
        struct world *, struct model_server *, struct message *) = {
        [MESSAGE_ACQUIRE] = acquire_here,
        [MESSAGE_EXTEND] = extend_here,
        [MESSAGE_RELEASE] = release_here,
        [MESSAGE_LOOK] = look_here,
        [MESSAGE_INSPECT] = inspect_here,
        [MESSAGE_CAP] = cap_here,
        [MESSAGE_RAISE] = raise_here,
        [MESSAGE_JOIN] = queue_wait,
        [MESSAGE_STAY] = queue_wait,
        [MESSAGE_SUBSCRIBE] = subscribe_here,
        [MESSAGE_BEGIN] = record_begin,
        [MESSAGE_LOOK_ONCE] = record_look,
        [MESSAGE_TELL] = record_tell,
        [MESSAGE_FORGET] = record_forget,
        [MESSAGE_UNBEGIN] = record_unbegin,
        [MESSAGE_TAKE] = holders_take,
    };
    static void (*const of_sharers[])(
        struct world *, struct model_server *, struct message *) = {
        [MESSAGE_EXTEND] = holders_extend,
        [MESSAGE_RELEASE] = holders_release,
        [MESSAGE_LOOK] = holders_see,
        [MESSAGE_CAP] = holders_cap,
    };
    bool shares = m->kind < sizeof(of_sharers) / sizeof(of_sharers[0]) &&
                  of_sharers[m->kind] && share_of(w, m->token).weight > 0;
    (shares ? of_sharers : commands)[m->kind](w, s, m);
    note_answer(w, s, m);
    if (w->setting.replicated && has_written(m))
        replication_wrote(w, s, m);
}

void server_apply(struct world *w, struct model_server *s, struct message *m)
{
    m->outcome =
        (struct outcome){.left_ms = LEFT_UNKNOWN, .sent_at = m->sent_at};
    m->wrote = 0;
    w->checker.of_former = s->former;
    if (m->kind == MESSAGE_HELLO) {
        m->run_id = s->run_id;
        m->uptime_s = server_uptime_s(w, s);
        if (w->setting.failover)
            promotion_tell(w, s, m);
    } else if (m->kind == MESSAGE_ALIVE) {
        m->outcome.kind = OUTCOME_MINE;
        promotion_tell(w, s, m);
    } else if (m->kind == MESSAGE_MARK) {
        promotion_mark(w, s, m);
    } else if (m->kind == MESSAGE_WAIT) {
        wait_here(s, m);
    } else if (s->replica && m->kind != MESSAGE_KILL) {
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = FAULT_NOT_PRIMARY;
    } else if (m->kind == MESSAGE_KILL && w->setting.kill_allowed) {
        kill_here(w, s, m);
    } else if (m->kind == MESSAGE_KILL) {
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = FAULT_NO_PERMISSION;
    } else if (refuses(w, s, m)) {
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = s->refusal;
    } else if (!knows_script(w, s, m)) {
        m->outcome.kind = OUTCOME_FAULT;
        m->outcome.fault = FAULT_RETRY;
        m->no_script = true;
    } else {
        carry_out(w, s, m);
    }
    w->checker.of_former = false;
    note(w, "s%llu does for n%llu t%llu:", message_name(m->kind), s->index,
        m->name, m->token, m->outcome.kind);
}
