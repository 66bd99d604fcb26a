/* SPDX-License-Identifier: MIT */
/*
 * A process: its links and its workers live and die together. Keeps: whatever
 * has failed is told before anything new is sent; of one that died nothing
 * goes on but what the kernel had taken.
 */
#include "sim/client.h"
#include "sim/sentinels.h"
#include "sim/world.h"

void process_turn(struct world *w, struct process *p)
{
    bool again;
    do {
        struct list *node;
        while ((node = list_pop(&p->failed))) {
            struct request *r = list_entry(node, struct request, node);
            r->state = REQUEST_IDLE;
            handle_outcome(w, r,
                &(struct outcome){.kind = OUTCOME_FAULT,
                    .fault = r->fault,
                    .unsure = r->unsure,
                    .applied = r->granted,
                    .left_ms = LEFT_UNKNOWN});
        }
        for (unsigned i = 0; i < w->options.servers; i++)
            link_step(w, &p->link[i]);
        again = w->sentinels && watch_step(w, p);
    } while (again || !list_empty(&p->failed));
}

static void reborn(struct world *w, struct alarm *alarm)
{
    struct process *p = list_entry(alarm, struct process, reborn);
    unsigned index = p->index;
    uint64_t life = p->life;
    alarm_end(w, &p->reborn);
    process_start(w, p, index);
    p->life = life + 1;
}

void process_start(struct world *w, struct process *p, unsigned index)
{
    struct worker *workers = p->worker;
    *p = (struct process){.index = index, .alive = true, .worker = workers};
    list_init(&p->failed);
    alarm_init(w, &p->reborn, reborn);
    for (unsigned i = 0; i < w->options.servers; i++)
        link_start(w, p, i);
    subscription_start(w, p);
    if (w->sentinels)
        watch_start(w, p);
    for (unsigned i = 0; i < w->setting.workers; i++) {
        handle_start(w, &p->worker[i], p, i);
        if (i < w->setting.groups * MEMBERS_MAX)
            p->worker[i].group = &p->group[i / MEMBERS_MAX];
        program_start(w, &p->worker[i]);
    }
    groups_start(w, p);
}

/* Closes what is open; the kernel still delivers what was sent. */
static void leave_all(struct world *w, struct process *p)
{
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct link *l = &p->link[i];
        if (l->conn)
            conn_leave(w, l->conn, w->setting.linger_ns);
        link_end(w, l);
    }
    if (p->subscription.conn) /* its host may be gone, too */
        conn_leave(w, p->subscription.conn,
            chance(w, 50) ? 2 * ms_to_ns(w->setting.max_ttl_ms)
                          : w->setting.linger_ns);
    subscription_end(w, p);
    if (w->sentinels)
        watch_end(w, p);
    groups_end(w, p);
    for (unsigned i = 0; i < w->setting.workers; i++) {
        handle_end(w, &p->worker[i]);
        program_end(w, &p->worker[i]);
    }
}

void process_end(struct world *w, struct process *p)
{
    if (p->alive)
        leave_all(w, p);
    alarm_end(w, &p->reborn);
}

void process_die(struct world *w, struct process *p, uint64_t away)
{
    note(w, "c%llu dies", NULL, p->index);
    checker_died(w, p);
    leave_all(w, p);
    p->alive = false;
    p->paused_until = 0;
    for (unsigned i = 0; i < w->setting.workers; i++)
        p->worker[i].holding = false;
    alarm_set(w, &p->reborn, w->now + away);
}
