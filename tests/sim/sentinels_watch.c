/* SPDX-License-Identifier: MIT */
/*
 * A model of src/client/sentinel_watch.c and sentinel.c: asks the Sentinels
 * before a connection, and once a second while a call is under way or a lock is
 * renewed; core/confirm.c says what follows from their answers.
 *
 * Invariant: an answer is a view with the times that sentinel.c gives it.
 */
#include <stdio.h>

#include "sim/promotion.h"
#include "sim/sentinels.h"
#include "sim/world.h"

#define LOOK_EVERY (1000 * MS)
#define LOOK_SOON (100 * MS)
#define PATIENCE (500 * MS)
#define FORMER_PATIENCE (300 * MS)

static struct watch *watch_of(const struct world *w, const struct process *p)
{
    return &w->sentinels->watch[p->index];
}

static struct link *link_of(struct process *p)
{
    return &p->link[0];
}

static bool former_primary_is_asked(const struct watch *watch)
{
    return watch->former.state != FORMER_NOT;
}

static bool is_pending(const struct asked *a)
{
    return a->state != ASKED_NOT;
}

/* --------------------------------------------------------------- questions */

static uint64_t sentinel_travel(struct world *w)
{
    if (chance(w, 5))
        return roll_from(w, MS, w->setting.slow_ns);
    return roll_from(w, MS / 20, w->setting.travel_ns);
}

static void ask(struct world *w, struct asked *a)
{
    a->state = ASKED_LEFT;
    a->asked_at = w->now;
    a->fails_at = w->now + w->setting.patience_ns;
    alarm_set(w, &a->alarm, w->now + sentinel_travel(w));
}

static void take_answer(struct world *w, struct asked *a)
{
    struct watch *watch = watch_of(w, a->process);
    struct sentinel_view *v = &watch->confirm.views[a - watch->asked];
    const struct said *said = &a->said;
    struct sentinel_view seen = {.asked_at = a->asked_at,
        .since = confirm_since(w->now, said->same ? ms_to_ns(said->for_ms) : 0),
        .port = (uint16_t)(1 + said->node),
        .host = "node",
        .others = w->sentinels->count - 1};
    snprintf(seen.id, sizeof(seen.id), "%u", a->sentinel);
    confirm_take(v, &seen);
    a->state = ASKED_NOT;
}

static void decide(struct world *w, struct process *p);

/* It arrives, its answer comes, or it is given up. What cannot pass now does
 * later. */
static void asked_rings(struct world *w, struct alarm *alarm)
{
    struct asked *a = list_entry(alarm, struct asked, alarm);
    struct process *p = a->process;
    uint64_t passes = sentinels_cut_off(w, p, a->sentinel);
    if (a->state == ASKED_COMES)
        passes = later(passes, p->paused_until);
    if (w->now >= a->fails_at && w->now >= p->paused_until) {
        a->state = ASKED_NOT;
        process_turn(w, p);
    } else if (w->now < passes) {
        bool asleep = w->now < p->paused_until;
        alarm_set(w, alarm,
            asleep ? later(passes, p->paused_until)
                   : earlier(passes, a->fails_at));
    } else if (a->state == ASKED_LEFT) {
        a->said = sentinels_say(w, a->sentinel);
        a->state = ASKED_COMES;
        alarm_set(w, alarm, w->now + sentinel_travel(w));
    } else {
        take_answer(w, a);
        decide(w, p);
        process_turn(w, p);
    }
}

/* ------------------------------------------------------ the former primary */

static void ask_former(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    struct former *f = &watch->former;
    f->state = FORMER_LEFT;
    f->node = watch->node;
    f->asked_at = w->now;
    f->until = w->now + FORMER_PATIENCE;
    alarm_set(w, &f->alarm, w->now + sentinel_travel(w));
}

/* As asked_rings(). */
static void former_rings(struct world *w, struct alarm *alarm)
{
    struct former *f = list_entry(alarm, struct former, alarm);
    struct process *p = f->process;
    struct model_server *s = &w->sentinels->node[f->node].server;
    uint64_t passes = later(sentinels_parted(w, p, s), s->stopped_until);
    if (w->now < p->paused_until) {
        alarm_set(w, alarm, p->paused_until);
    } else if (w->now >= f->until || s->down) {
        f->state = FORMER_NOT;
        process_turn(w, p);
    } else if (w->now < passes) {
        alarm_set(w, alarm, earlier(passes, f->until));
    } else if (f->state == FORMER_LEFT) {
        f->said = (struct message){.run_id = s->run_id};
        promotion_tell(w, s, &f->said);
        f->state = FORMER_COMES;
        alarm_set(w, alarm, w->now + sentinel_travel(w));
    } else {
        link_hear_former(w, link_of(p), &f->said);
        f->state = FORMER_NOT;
        process_turn(w, p);
    }
}

/* -------------------------------------------------------- what follows of it
 */

static uint64_t patience(const struct world *w, const struct watch *watch)
{
    uint64_t until = 0, longest = earlier(PATIENCE, w->setting.timeout_ns / 2);
    for (unsigned i = 0; i < watch->confirm.count; i++)
        if (is_pending(&watch->asked[i]))
            until = later(until, watch->asked[i].asked_at + longest);
    return until;
}

static void move(struct world *w, struct process *p, unsigned node)
{
    struct watch *watch = watch_of(w, p);
    bool known = watch->node != NO_NODE;
    note(
        w, "c%llu is told that node %llu is the primary", NULL, p->index, node);
    link_leave(w, link_of(p));
    if (p->subscription.conn)
        subscription_lost(w, p, roll(w, w->setting.linger_ns));
    for (unsigned i = 0; known && i < w->setting.workers; i++)
        handle_hurry(w, &p->worker[i]);
    watch->node = node;
}

static bool take_primary(
    struct world *w, struct process *p, const struct sentinel_view *named)
{
    struct watch *watch = watch_of(w, p);
    struct eligibility *e = &link_of(p)->eligibility;
    unsigned node = named->port - 1u;
    bool present = watch->node == node, known = watch->node != NO_NODE;
    bool ask =
        known && w->setting.failover && eligibility_gives_way_to(e, named);
    if ((watch->unlocated && named->asked_at < watch->lost_at) ||
        !confirm_covers(named->asked_at, w->now))
        return false;
    if (!present && ask)
        ask_former(w, p);
    if (!present)
        move(w, p, node);
    eligibility_named(e, named, !present && known);
    if (watch->unlocated && former_primary_is_asked(watch))
        return false;
    watch->located = watch->located || watch->unlocated;
    watch->unlocated = false;
    return true;
}

/* Of a client that has no address yet, any one of them. */
static bool first_answer(const struct watch *watch, struct sentinel_view *named)
{
    for (unsigned i = 0; i < watch->confirm.count; i++) {
        if (watch->node != NO_NODE || watch->confirm.views[i].asked_at == 0)
            continue;
        *named = watch->confirm.views[i];
        return true;
    }
    return false;
}

static void decide(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    struct sentinel_view named;
    bool agreed = confirm_primary(&watch->confirm, &named);
    if (!agreed && !guarded_here(SIM_GUARD_FIRST_ANSWER))
        agreed = first_answer(watch, &named);
    bool current = agreed && named.asked_at >= watch->looked_at;
    if (agreed && take_primary(w, p, &named) && current)
        watch->undecided = false;
    if (!watch->undecided || w->now < patience(w, watch))
        return;
    watch->undecided = false;
    if (!current)
        link_not_found(w, link_of(p), FAULT_UNCONFIRMED);
}

/* -------------------------------------------------------------- when it asks
 */

static bool is_in_use(const struct world *w, const struct process *p)
{
    for (unsigned i = 0; i < w->setting.workers; i++) {
        const struct worker *k = &p->worker[i];
        if (k->life.running || renewal_on(k->life.renewal))
            return true;
    }
    return false;
}

static uint64_t asks_at(struct world *w, struct process *p)
{
    const struct watch *watch = watch_of(w, p);
    struct link *l = link_of(p);
    bool settled =
        l->state == LINK_UP && l->eligibility.reason != REASON_REPLICA;
    unsigned pending = 0;
    for (unsigned i = 0; i < watch->confirm.count; i++)
        pending += is_pending(&watch->asked[i]);
    if (pending == watch->confirm.count)
        return NEVER;
    bool locates = watch->unlocated && !former_primary_is_asked(watch);
    uint64_t at = locates ? link_wants_at(w, l) : NEVER;
    if (l->held_back)
        at = watch->looked_at && !watch->undecided
                 ? watch->looked_at + LOOK_SOON / 10
                 : 0;
    if (is_in_use(w, p))
        at = earlier(at, watch->looked_at + (settled ? LOOK_EVERY : LOOK_SOON));
    return watch->undecided ? later(at, watch->looked_at + LOOK_SOON) : at;
}

static void look(struct world *w, struct watch *watch)
{
    watch->looked_at = w->now;
    watch->undecided = true;
    for (unsigned i = 0; i < watch->confirm.count; i++)
        if (!is_pending(&watch->asked[i]))
            ask(w, &watch->asked[i]);
}

bool watch_step(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    watch->located = false;
    if (watch->undecided)
        decide(w, p);
    if (asks_at(w, p) <= w->now)
        look(w, watch);
    uint64_t at = asks_at(w, p);
    if (watch->undecided)
        at = earlier(at, later(patience(w, watch), w->now + 1));
    alarm_set(w, &watch->alarm, at);
    return watch->located;
}

static void rings(struct world *w, struct alarm *alarm)
{
    struct watch *watch = list_entry(alarm, struct watch, alarm);
    struct process *p = watch->asked[0].process;
    if (w->now < p->paused_until)
        alarm_set(w, alarm, p->paused_until);
    else
        process_turn(w, p);
}

/* --------------------------------------------------------------- for others */

void watch_lost(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    watch->unlocated = true;
    watch->lost_at = w->now;
}

bool watch_located(const struct world *w, const struct process *p)
{
    return !watch_of(w, p)->unlocated;
}

struct model_server *watch_server(struct world *w, const struct process *p)
{
    unsigned node = watch_of(w, p)->node;
    return &w->sentinels->node[node == NO_NODE ? 0 : node].server;
}

/* -------------------------------------------------------------- its list */

static void list_one(struct world *w, struct process *p, unsigned sentinel)
{
    struct watch *watch = watch_of(w, p);
    struct asked *a = &watch->asked[watch->confirm.count++];
    *a = (struct asked){.process = p, .sentinel = sentinel};
    alarm_init(w, &a->alarm, asked_rings);
    watch->confirm.listed = watch->confirm.count;
}

/* Most list each Sentinel once. Some list too few, or one by two names. */
static void draw_list(struct world *w, struct process *p)
{
    unsigned count = w->sentinels->count, percent = (unsigned)roll(w, 100);
    if (p->index == 0) /* somebody has to list enough of them */
        percent = 0;
    unsigned first = (unsigned)roll(w, count), listed = count;
    if (percent >= 80 && percent < 90)
        listed = (unsigned)roll_from(w, 1, count - 1);
    if (percent >= 90) /* as many names as there are Sentinels */
        listed = count / 2 + 1;
    for (unsigned i = 0; i < listed; i++)
        list_one(w, p, (first + i) % count);
    if (percent >= 90)
        for (unsigned i = 0; i < count - listed; i++)
            list_one(w, p, (first + i) % count);
    else if (percent >= 70 && percent < 80)
        list_one(w, p, first);
}

void watch_start(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    *watch =
        (struct watch){.node = NO_NODE, .unlocated = true, .lost_at = w->now};
    draw_list(w, p);
    alarm_init(w, &watch->alarm, rings);
    watch->former.process = p;
    alarm_init(w, &watch->former.alarm, former_rings);
}

void watch_end(struct world *w, struct process *p)
{
    struct watch *watch = watch_of(w, p);
    for (unsigned i = 0; i < watch->confirm.count; i++)
        alarm_end(w, &watch->asked[i].alarm);
    alarm_end(w, &watch->former.alarm);
    alarm_end(w, &watch->alarm);
}
