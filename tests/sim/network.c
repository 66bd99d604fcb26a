/* SPDX-License-Identifier: MIT */
/*
 * Keeps: in one pipe nothing overtakes and nothing is lost alone; a message
 * is either delivered once or dropped with its pipe. A server that is stopped
 * and a client that is paused leave what arrives in the pipe; a client that is
 * paused may leave there what it has sent, too.
 */
#include "sim/network.h"

#include <stdlib.h>

#include "sim/client.h"
#include "sim/promotion.h"
#include "sim/replication.h"
#include "sim/sentinels.h"
#include "sim/server.h"
#include "sim/world.h"

const char *message_name(enum message_kind kind)
{
    static const char *const names[] = {
        [MESSAGE_HELLO] = "hello",
        [MESSAGE_ACQUIRE] = "acquire",
        [MESSAGE_EXTEND] = "extend",
        [MESSAGE_RELEASE] = "compare-and-delete",
        [MESSAGE_LOOK] = "look",
        [MESSAGE_INSPECT] = "inspect",
        [MESSAGE_CAP] = "cap",
        [MESSAGE_KILL] = "kill",
        [MESSAGE_RAISE] = "raise",
        [MESSAGE_JOIN] = "join",
        [MESSAGE_STAY] = "stay",
        [MESSAGE_SUBSCRIBE] = "subscribe",
        [MESSAGE_GRANT] = "grant",
        [MESSAGE_HINT] = "hint",
        [MESSAGE_BEGIN] = "begin",
        [MESSAGE_LOOK_ONCE] = "look at the record",
        [MESSAGE_TELL] = "tell",
        [MESSAGE_FORGET] = "forget",
        [MESSAGE_UNBEGIN] = "take back",
        [MESSAGE_ALIVE] = "is it alive?",
        [MESSAGE_MARK] = "mark",
        [MESSAGE_WAIT] = "wait",
        [MESSAGE_ASK] = "ask",
        [MESSAGE_TAKE] = "take",
    };
    return names[kind];
}

enum verb_kind message_verb(enum message_kind kind)
{
    static const enum verb_kind verbs[] = {
        [MESSAGE_ACQUIRE] = VERB_ACQUIRE,
        [MESSAGE_EXTEND] = VERB_EXTEND,
        [MESSAGE_RELEASE] = VERB_RELEASE,
        [MESSAGE_LOOK] = VERB_INSPECT,
        [MESSAGE_INSPECT] = VERB_INSPECT,
        [MESSAGE_CAP] = VERB_CAP_TTL,
        [MESSAGE_RAISE] = VERB_RAISE,
        [MESSAGE_JOIN] = VERB_JOIN,
        [MESSAGE_STAY] = VERB_STAY,
        [MESSAGE_BEGIN] = VERB_BEGIN,
        [MESSAGE_LOOK_ONCE] = VERB_READ_RECORD,
        [MESSAGE_TELL] = VERB_TELL,
        [MESSAGE_FORGET] = VERB_FORGET,
        [MESSAGE_UNBEGIN] = VERB_UNDO_BEGIN,
        [MESSAGE_TAKE] = VERB_ACQUIRE,
    };
    return verbs[kind];
}

uint64_t travel(struct world *w, const struct model_server *s)
{
    if (w->now < s->slow_until)
        return roll_from(w, MS, w->setting.slow_ns);
    return roll_from(w, MS / 20, w->setting.travel_ns);
}

static void pipe_push(
    struct world *w, struct pipe *p, struct message *m, uint64_t arrives)
{
    m->arrives = later(arrives, p->last);
    p->last = m->arrives;
    if (list_empty(&p->messages))
        alarm_set(w, &p->alarm, m->arrives);
    list_append(&p->messages, &m->node);
}

static struct message *pipe_pop(struct world *w, struct pipe *p)
{
    struct list *node = list_pop(&p->messages);
    if (!list_empty(&p->messages)) {
        struct message *next =
            list_entry(p->messages.next, struct message, node);
        alarm_set(w, &p->alarm, next->arrives);
    }
    return list_entry(node, struct message, node);
}

static void pipe_clear(struct world *w, struct pipe *p)
{
    struct list *node;
    while ((node = list_pop(&p->messages)))
        free(list_entry(node, struct message, node));
    alarm_set(w, &p->alarm, NEVER);
}

/* Once nobody is left at either end. */
static void free_if_over(struct world *w, struct conn *c)
{
    if (!c->served && !c->process)
        conn_free(w, c);
}

void conn_free(struct world *w, struct conn *c)
{
    list_remove(&c->node);
    pipe_clear(w, &c->up);
    pipe_clear(w, &c->down);
    alarm_end(w, &c->up.alarm);
    alarm_end(w, &c->down.alarm);
    alarm_end(w, &c->breaks);
    alarm_end(w, &c->gone);
    free(c);
}

static struct message *copy_of(const struct message *m)
{
    struct message *copy = malloc(sizeof(*copy));
    if (!copy)
        abort();
    *copy = *m;
    list_init(&copy->node);
    return copy;
}

/* What is said of a record must come to the same if it is heard twice: m is
 * the command as it was sent. BEGIN is heard twice at once if it was granted:
 * later its token might begin anew. */
static void comes_twice(
    struct world *w, struct conn *c, const struct message *m, bool granted)
{
    bool once = m->kind >= MESSAGE_BEGIN && m->kind <= MESSAGE_UNBEGIN;
    if (!once || m->doubled || !(w->faults.allowed & 1u << TROUBLE_LATE) ||
        (m->kind == MESSAGE_BEGIN && !granted) || !chance(w, 3))
        return;
    struct message *again = copy_of(m);
    again->doubled = true;
    if (m->kind == MESSAGE_BEGIN) {
        server_apply(w, c->server, again);
        free(again);
    } else {
        pipe_push(w, &c->up, again, w->now + travel(w, c->server));
    }
}

/* A WAIT has to wait, and all behind it. */
static bool is_blocked(struct world *w, struct conn *c)
{
    const struct message *m =
        list_entry(c->up.messages.next, struct message, node);
    uint64_t until;
    if (m->kind != MESSAGE_WAIT || !replication_must_wait(w, c, m, &until))
        return false;
    alarm_set(w, &c->up.alarm, until);
    return true;
}

/* Nothing passes before. */
static uint64_t parted_until(const struct world *w, const struct conn *c)
{
    return w->sentinels ? sentinels_parted(w, c->client, c->server) : 0;
}

/* A command reaches the server. */
static void up_rings(struct world *w, struct alarm *alarm)
{
    struct conn *c = list_entry(alarm, struct conn, up.alarm);
    struct model_server *s = c->server;
    uint64_t passes = later(s->stopped_until, parted_until(w, c));
    if (w->now < passes) {
        alarm_set(w, alarm, passes);
        return;
    }
    c->held = c->holds && c->process && w->now < c->process->paused_until;
    if (c->held) {
        alarm_set(w, alarm, c->process->paused_until);
        return;
    }
    if (is_blocked(w, c))
        return;
    struct message *m = pipe_pop(w, &c->up);
    const struct message sent = *m;
    server_apply(w, s, m);
    if (m->kind == MESSAGE_WAIT)
        m->outcome.copies = (struct copies){
            .known = true, .replicas = (uint16_t)replication_copies(w, c)};
    if (m->wrote)
        c->wrote = m->wrote;
    comes_twice(w, c, &sent, m->outcome.kind == OUTCOME_GRANTED);
    if (m->kind == MESSAGE_HELLO)
        m->number = c->id;
    if (m->kind == MESSAGE_SUBSCRIBE && m->outcome.kind == OUTCOME_MINE)
        c->channel = m->channel;
    if (c->process && !m->doubled) {
        pipe_push(w, &c->down, m, w->now + travel(w, s));
        return;
    }
    free(m);
    if (list_empty(&c->up.messages)) /* then comes the end of the stream */
        conn_drop(w, c, true);
}

/* A reply reaches the client. */
static void down_rings(struct world *w, struct alarm *alarm)
{
    struct conn *c = list_entry(alarm, struct conn, down.alarm);
    struct process *p = c->process;
    uint64_t readable = later(p->paused_until, c->held_up_until);
    readable = later(readable, parted_until(w, c));
    if (w->now < readable) {
        alarm_set(w, alarm, readable);
        return;
    }
    struct message *m = pipe_pop(w, &c->down);
    if (c->link)
        link_heard(w, c->link, m);
    else
        subscription_heard(w, p, m);
    free(m);
    process_turn(w, p);
}

static void breaks(struct world *w, struct alarm *alarm)
{
    struct conn *c = list_entry(alarm, struct conn, breaks);
    struct process *p = c->process;
    uint64_t readable = later(p->paused_until, c->held_up_until);
    readable = later(readable, parted_until(w, c));
    if (w->now < readable || !list_empty(&c->down.messages)) {
        uint64_t read = later(c->down.last, readable);
        alarm_set(w, alarm, later(w->now, read) + 1);
        return;
    }
    if (c->link)
        link_lost(w, c->link, 0);
    else
        subscription_lost(w, p, 0);
    process_turn(w, p);
}

static void gone(struct world *w, struct alarm *alarm)
{
    conn_drop(w, list_entry(alarm, struct conn, gone), true);
}

struct conn *conn_open(struct world *w, struct model_server *s,
    struct process *process, struct link *link)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->server = s;
    c->process = process;
    c->client = process;
    c->link = link;
    c->served = true;
    c->id = s->next_client++;
    c->run_id = s->run_id;
    c->holds = c->id % 2 == 0;
    list_init(&c->up.messages);
    list_init(&c->down.messages);
    alarm_init(w, &c->up.alarm, up_rings);
    alarm_init(w, &c->down.alarm, down_rings);
    alarm_init(w, &c->breaks, breaks);
    alarm_init(w, &c->gone, gone);
    list_init(&c->node);
    list_append(&s->conns, &c->node);
    return c;
}

void conn_send(struct world *w, struct conn *c, const struct message *m)
{
    if (!c->served)
        return; /* to nobody */
    if (c->server->former && !w->sentinels)
        promotion_asked(w, c->server);
    pipe_push(w, &c->up, copy_of(m), w->now + travel(w, c->server));
}

static bool listens(const struct conn *c, uint64_t channel)
{
    return c->served && c->channel == channel;
}

void conn_publish(
    struct world *w, struct model_server *s, const struct message *message)
{
    for (struct list *n = s->conns.next; n != &s->conns; n = n->next) {
        struct conn *c = list_entry(n, struct conn, node);
        if (listens(c, message->channel) && c->process)
            pipe_push(w, &c->down, copy_of(message), w->now + travel(w, s));
    }
}

unsigned conn_listeners(const struct model_server *s, uint64_t channel)
{
    unsigned count = 0;
    for (struct list *n = s->conns.next; n != &s->conns; n = n->next)
        count += listens(list_entry(n, struct conn, node), channel);
    return count;
}

void conn_leave(struct world *w, struct conn *c, uint64_t linger)
{
    bool listener = !c->link;
    c->process = NULL;
    c->link = NULL;
    pipe_clear(w, &c->down);
    if (c->held) /* what is held is never sent */
        pipe_clear(w, &c->up);
    alarm_set(w, &c->breaks, NEVER);
    /* The end of a silent connection comes at once, but that of a listener may
     * be noticed late: its host may be gone. */
    bool ends = list_empty(&c->up.messages) && !listener;
    if (!c->served || linger == 0 || ends) {
        c->served = false;
        conn_free(w, c);
        return;
    }
    alarm_set(w, &c->gone, w->now + linger);
}

void conn_drop(struct world *w, struct conn *c, bool clean)
{
    if (!c->served)
        return;
    c->served = false;
    pipe_clear(w, &c->up);
    if (c->process) {
        if (!clean)
            pipe_clear(w, &c->down);
        alarm_set(w, &c->breaks, w->now + travel(w, c->server));
    }
    free_if_over(w, c);
}
