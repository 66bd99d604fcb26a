/* SPDX-License-Identifier: MIT */
/*
 * A model of src/client/subscriber.c: the second connection of a process, on
 * which it is told that a lock was handed over to one of its tokens. It is made
 * when a worker begins to wait in line, and anew while one does.
 *
 * Invariant: the lines know its state: MESSAGES_UP only while a subscription
 * that was made is not known to be lost, and each has a number of its own.
 */
#include "sim/client.h"
#include "sim/sentinels.h"
#include "sim/world.h"

#define RECONNECT_FIRST (10 * MS)
#define RECONNECT_MAX (500 * MS)
#define REFUSED_FOR (1000 * MS)

static bool is_wanted(const struct world *w, const struct process *p)
{
    for (unsigned i = 0; i < w->setting.workers; i++)
        if (p->worker[i].life.running && life_in_line(&p->worker[i].life))
            return true;
    return false;
}

static void changed(struct world *w, struct process *p, int state)
{
    struct messages *messages = &p->subscription.messages;
    if ((int)messages->state == state)
        return;
    messages->state = (__typeof__(messages->state))state;
    for (unsigned i = 0; i < w->setting.workers; i++)
        handle_messages_changed(w, &p->worker[i]);
}

static void put_off(struct world *w, struct process *p, uint64_t delay)
{
    struct subscription *u = &p->subscription;
    u->state = SUBSCRIPTION_DOWN;
    u->at = w->now + delay;
    alarm_set(w, &u->alarm, u->at);
}

void subscription_lost(struct world *w, struct process *p, uint64_t linger)
{
    struct subscription *u = &p->subscription;
    bool was_up = u->state == SUBSCRIPTION_UP;
    note(w, "c%llu has lost its subscription", NULL, p->index);
    conn_leave(w, u->conn, linger);
    u->conn = NULL;
    put_off(w, p, was_up ? 0 : backoff_next(&u->reconnect));
    if (u->messages.state == MESSAGES_UP)
        changed(w, p, MESSAGES_COMING);
}

/* It is of no use until that time. */
static void do_without(struct world *w, struct process *p)
{
    struct subscription *u = &p->subscription;
    note(w, "c%llu waits without messages", NULL, p->index);
    conn_leave(w, u->conn, 0);
    u->conn = NULL;
    put_off(w, p, REFUSED_FOR);
    changed(w, p, MESSAGES_NONE);
}

/* ------------------------------------------------------------- in its time */

static void dialled(struct world *w, struct process *p)
{
    struct subscription *u = &p->subscription;
    struct model_server *s = w->sentinels ? watch_server(w, p) : &w->server[0];
    /* The connection for commands finds the primary. */
    bool lost = w->sentinels &&
                (p->link[0].state != LINK_UP || sentinels_parted(w, p, s));
    if (s->down || lost) {
        put_off(w, p, backoff_next(&u->reconnect));
        return;
    }
    u->state = SUBSCRIPTION_ASKED;
    u->at = w->now + w->setting.patience_ns;
    u->conn = conn_open(w, s, p, NULL);
    conn_send(w, u->conn,
        &(struct message){
            .kind = MESSAGE_SUBSCRIBE, .channel = subscription_channel(p)});
}

static void rings(struct world *w, struct alarm *alarm)
{
    struct process *p = list_entry(alarm, struct process, subscription.alarm);
    struct subscription *u = &p->subscription;
    if (w->now < p->paused_until) {
        alarm_set(w, alarm, p->paused_until);
        return;
    }
    if (u->state == SUBSCRIPTION_ASKED) {
        subscription_lost(w, p, roll(w, w->setting.linger_ns));
    } else if (u->state == SUBSCRIPTION_DIALLING) {
        dialled(w, p);
    } else if (is_wanted(w, p)) {
        u->state = SUBSCRIPTION_DIALLING;
        u->at = w->now + travel(w, &w->server[0]);
    }
    if (u->state != SUBSCRIPTION_DOWN)
        alarm_set(w, alarm, u->at);
    process_turn(w, p);
}

void subscription_want(struct world *w, struct process *p)
{
    struct subscription *u = &p->subscription;
    if (u->state == SUBSCRIPTION_DOWN)
        alarm_set(w, &u->alarm, later(w->now, u->at));
}

/* ---------------------------------------------------------- what it hears */

static void subscribed(
    struct world *w, struct process *p, const struct message *m)
{
    struct subscription *u = &p->subscription;
    if (m->outcome.kind != OUTCOME_MINE &&
        fault_is_transient(m->outcome.fault)) {
        subscription_lost(w, p, 0);
    } else if (m->outcome.kind != OUTCOME_MINE) {
        do_without(w, p);
    } else {
        u->state = SUBSCRIPTION_UP;
        u->messages.number++;
        backoff_reset(&u->reconnect);
        alarm_set(w, &u->alarm, NEVER);
        changed(w, p, MESSAGES_UP);
    }
}

void subscription_heard(
    struct world *w, struct process *p, const struct message *m)
{
    if (m->kind == MESSAGE_SUBSCRIBE) {
        subscribed(w, p, m);
        return;
    }
    bool hint = m->kind == MESSAGE_HINT;
    bool asks = m->kind == MESSAGE_ASK;
    note(w,
        hint   ? "c%llu is told that n%llu t%llu is the first in line"
        : asks ? "c%llu is told to ask for n%llu t%llu"
               : "c%llu is told that it has n%llu t%llu",
        NULL, p->index, m->name, m->token);
    for (unsigned i = 0; i < w->setting.workers; i++) {
        if (p->worker[i].token != m->token)
            continue;
        if (hint)
            handle_hinted(w, &p->worker[i]);
        else if (asks)
            handle_told_to_ask(w, &p->worker[i]);
        else
            handle_told(w, &p->worker[i]);
    }
}

uint64_t subscription_channel(const struct process *p)
{
    return CHANNEL_NONE + 1 + p->life * PROCESSES_MAX + p->index;
}

/* --------------------------------------------------------------- the test */

bool subscription_untested(const struct process *p)
{
    const struct subscription *u = &p->subscription;
    return u->state == SUBSCRIPTION_UP &&
           (u->tested_link != p->link[0].number ||
               u->tested_number != u->messages.number);
}

void subscription_tested(struct world *w, struct process *p, bool deaf)
{
    struct subscription *u = &p->subscription;
    if (!subscription_untested(p))
        return;
    u->tested_link = p->link[0].number;
    u->tested_number = u->messages.number;
    if (deaf)
        do_without(w, p);
}

/* ------------------------------------------------------ beginning and ending
 */

void subscription_start(struct world *w, struct process *p)
{
    struct subscription *u = &p->subscription;
    *u = (struct subscription){.messages.state = MESSAGES_COMING};
    alarm_init(w, &u->alarm, rings);
    backoff_init(&u->reconnect, RECONNECT_FIRST, RECONNECT_MAX,
        w->options.seed + p->index);
}

void subscription_end(struct world *w, struct process *p)
{
    alarm_end(w, &p->subscription.alarm);
}
