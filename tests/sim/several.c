/* SPDX-License-Identifier: MIT */
/* Drives handles of several names, and their programs. */
#include "sim/several.h"

#include "sim/client.h"
#include "sim/world.h"

/* The bits of struct several are of its members. */
static unsigned number_of(const struct group *g, const struct worker *k)
{
    unsigned i = 0;
    while (i < g->several.count && g->member[i] != k)
        i++;
    return i;
}

static bool is_in(uint64_t set, unsigned member)
{
    return set >> member & 1;
}

static void wake_at(struct world *w, struct group *g)
{
    alarm_set(w, &g->alarm, earlier(g->next_at, several_wake(&g->several)));
}

static void rest(struct world *w, struct group *g)
{
    g->state = GROUP_IDLE;
    for (unsigned i = 0; i < g->several.count; i++) {
        g->member[i]->state = PROGRAM_IDLE;
        g->member[i]->holding = false;
    }
    g->next_at =
        w->stopping ? NEVER : w->now + 1 + roll(w, w->setting.think_ns);
}

/* ------------------------------------------------------------------ actions */

static uint64_t earliest_deadline(const struct group *g)
{
    uint64_t deadline = NEVER;
    for (unsigned i = 0; i < g->several.count; i++)
        deadline = earlier(deadline, g->member[i]->life.lease.deadline);
    return deadline;
}

static void settle(struct world *w, struct group *g)
{
    bool held = earliest_deadline(g) > w->now;
    for (unsigned i = 0; held && i < g->several.count; i++)
        handle_all_granted(w, g->member[i], g->renewed);
    several_settled(&g->several, held, w->now);
    for (unsigned i = 0; held && i < g->several.count; i++) {
        g->member[i]->holding = true;
        checker_granted(w, g->member[i]);
    }
}

static void begin_member(struct world *w, struct group *g, unsigned i)
{
    struct worker *k = g->member[i];
    struct several_end lost = {.result = LIFE_LOST};
    k->state = PROGRAM_WAITS;
    k->token_is_used = k->token_wanted = false;
    if (call_traits[g->several.call].acquires)
        handle_acquire_by(
            w, k, deadline_left(g->several.wait_until, w->now), g->several.end);
    else if (!handle_release(w, k))
        several_over(&g->several, i, &lost, w->now);
}

static void carry_out(
    struct world *w, struct group *g, const struct several_action *action)
{
    struct worker *k = g->member[action->member];
    switch (action->kind) {
    case SEVERAL_TOKEN: /* each member has one */
        break;
    case SEVERAL_BEGIN:
        begin_member(w, g, action->member);
        break;
    case SEVERAL_CANCEL:
        handle_cancel(w, k);
        break;
    case SEVERAL_REMOVE:
    case SEVERAL_LEAVE:
        handle_give_back(w, k);
        k->state = PROGRAM_IDLE;
        break;
    case SEVERAL_SETTLE:
        settle(w, g);
        break;
    }
}

/* For how long its program works; as long as the ttl lasts, or longer. */
static void hold(struct world *w, struct group *g)
{
    uint64_t ttl = ms_to_ns(g->member[0]->life.terms.ttl_ms);
    g->state = GROUP_HOLDS;
    g->lost = false;
    g->next_at = w->now + 1 + roll(w, g->renewed ? 2 * ttl : ttl / 2);
    if (chance(w, 3))
        g->next_at += ttl; /* it oversleeps */
    w->sum.together++;
}

static void finish(struct world *w, struct group *g)
{
    if (g->state == GROUP_ACQUIRES && g->several.result == LIFE_OK)
        hold(w, g);
    else
        rest(w, g);
}

static void run(struct world *w, struct group *g)
{
    struct several_action action;
    if (g->busy)
        return;
    g->busy = true;
    while (several_next(&g->several, &action, w->now))
        carry_out(w, g, &action);
    g->busy = false;
    if (!g->several.running &&
        (g->state == GROUP_ACQUIRES || g->state == GROUP_RELEASES))
        finish(w, g);
    wake_at(w, g);
}

/* ------------------------------------------------------ what the members say
 */

/* What follows is done in the same turn, but not inside of the member's. */
void group_completed(struct world *w, struct worker *k)
{
    struct group *g = k->group;
    struct several_end end = {
        .result = k->life.result,
        .fault = k->life.fault,
        .token_is_used = k->token_wanted,
    };
    bool held = k->life.call == CALL_ACQUIRE && end.result == LIFE_OK;
    k->state = held ? PROGRAM_HOLDS : PROGRAM_IDLE;
    several_over(&g->several, number_of(g, k), &end, w->now);
    if (!g->busy)
        alarm_set(w, &g->alarm, w->now);
}

void group_lost(struct world *w, struct worker *k)
{
    struct group *g = k->group;
    several_lost(&g->several, number_of(g, k), w->now);
    if (g->state == GROUP_HOLDS && !g->lost) {
        g->lost = true; /* its program stops its work */
        uint64_t ttl = ms_to_ns(k->life.terms.ttl_ms);
        g->next_at = earlier(g->next_at, w->now + roll(w, ttl / 4));
    }
    if (!g->busy)
        alarm_set(w, &g->alarm, w->now);
}

void group_cancel(struct world *w, struct worker *k)
{
    struct group *g = k->group;
    if (g->state != GROUP_ACQUIRES)
        return;
    several_cancel(&g->several);
    run(w, g);
}

bool group_has_token(struct worker *k)
{
    k->token_wanted = k->token_is_used;
    k->token_is_used = true;
    return !k->token_wanted;
}

/* ------------------------------------------------------------- its program */

/* 2 to 4 names of all, in any order. */
static unsigned pick(struct world *w, unsigned names[MEMBERS_MAX])
{
    unsigned all[NAMES_MAX], count = (unsigned)roll_from(w, 2, MEMBERS_MAX);
    for (unsigned i = 0; i < w->setting.names; i++)
        all[i] = i;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i + (unsigned)roll(w, w->setting.names - i);
        names[i] = all[at];
        all[at] = all[i];
    }
    return count;
}

static void sort(struct group *g, const unsigned *names, unsigned count,
    unsigned char order[MEMBERS_MAX])
{
    static const char digits[] = "0123456789";
    struct slice keys[MEMBERS_MAX];
    for (unsigned i = 0; i < count; i++)
        keys[i] = (struct slice){digits + names[i], 1};
    (void)several_order(keys, count, order);
    several_init(&g->several, count);
}

static void acquire(struct world *w, struct group *g)
{
    static const uint64_t waits[] = {0, 50 * MS, 500 * MS, 3000 * MS, NEVER};
    unsigned names[MEMBERS_MAX], count = pick(w, names);
    unsigned char order[MEMBERS_MAX];
    struct wish wish = program_wish(w, g->workers, 0, w->setting.min_ttl_ms);
    struct backoff backoff;
    uint64_t wait = waits[roll(w, 5)];
    sort(g, names, count, order);
    g->renewed = wish.renewed;
    wish.renewed = true; /* while others are waited for */
    wish.max_hold_ns = NEVER;
    wish.min_hold_ms = 0;
    for (unsigned i = 0; i < count; i++) {
        g->member[i] = &g->workers[i];
        wish.name = names[order[i]];
        handle_wish(w, g->member[i], &wish);
    }
    note(w, "c%llu acquires %llu names", NULL, g->process->index, count);
    g->state = GROUP_ACQUIRES;
    /* Somebody gives up in the end. */
    g->next_at = wait == NEVER ? w->now + roll(w, 5000 * MS) : NEVER;
    backoff_init(&backoff, 10 * MS, RETRY_MAX, roll(w, NEVER));
    several_acquire(
        &g->several, wait, w->setting.timeout_ns, false, &backoff, w->now);
    run(w, g);
}

static void begin(struct world *w, struct group *g)
{
    unsigned first = g->workers->index;
    uint64_t id = EVENT_BEGIN(
        g->process->index, first, w->begins[g->process->index][first]++);
    if (!event_happens(w, id)) {
        rest(w, g);
        wake_at(w, g);
        return;
    }
    acquire(w, g);
    event_over(w);
}

/* Most release it; some free the handle, even if a name is lost. */
static void end_hold(struct world *w, struct group *g)
{
    for (unsigned i = 0; i < g->several.count; i++)
        g->member[i]->holding = false;
    g->next_at = NEVER;
    if (chance(w, 20)) {
        for (unsigned i = 0; i < g->several.count; i++)
            handle_free(w, g->member[i]);
        rest(w, g);
        wake_at(w, g);
        return;
    }
    g->state = GROUP_RELEASES;
    several_call(&g->several, CALL_RELEASE);
    run(w, g);
}

static void rings(struct world *w, struct alarm *alarm)
{
    struct group *g = list_entry(alarm, struct group, alarm);
    if (w->now < g->process->paused_until) {
        alarm_set(w, alarm, g->process->paused_until);
        return;
    }
    bool due = w->now >= g->next_at;
    if (!due || g->state == GROUP_RELEASES)
        run(w, g);
    else if (g->state == GROUP_HOLDS)
        end_hold(w, g);
    else if (g->state == GROUP_ACQUIRES) {
        g->next_at = NEVER;
        several_cancel(&g->several);
        run(w, g);
    } else if (!w->stopping) {
        begin(w, g);
    }
    process_turn(w, g->process);
}

void groups_start(struct world *w, struct process *p)
{
    for (unsigned i = 0; i < w->setting.groups; i++) {
        struct group *g = &p->group[i];
        *g = (struct group){.process = p, .index = i};
        g->workers = &p->worker[i * MEMBERS_MAX];
        alarm_init(w, &g->alarm, rings);
        rest(w, g);
        wake_at(w, g);
    }
}

void groups_end(struct world *w, struct process *p)
{
    for (unsigned i = 0; i < w->setting.groups; i++)
        alarm_end(w, &p->group[i].alarm);
}

void groups_stop(struct world *w, struct process *p)
{
    for (unsigned i = 0; i < w->setting.groups; i++) {
        struct group *g = &p->group[i];
        if (g->state == GROUP_ACQUIRES)
            g->next_at = w->now;
        wake_at(w, g);
    }
}

/* ----------------------------------------------------------------- circles */

/* The name that a group waits for; false: it waits for none. */
static bool waits_for(const struct group *g, unsigned *name)
{
    if (g->state != GROUP_ACQUIRES || !g->several.running)
        return false;
    for (unsigned i = 0; i < g->several.count; i++) {
        if (!is_in(g->several.calls, i) ||
            !handle_calls(g->member[i], CALL_ACQUIRE))
            continue;
        *name = g->member[i]->name;
        return true;
    }
    return false;
}

/* The group that holds the name while it waits for another one; or NULL. */
static const struct group *holder_of(const struct world *w, unsigned name)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        const struct process *p = &w->process[i];
        for (unsigned j = 0; p->alive && j < w->setting.groups; j++) {
            const struct group *g = &p->group[j];
            for (unsigned m = 0; m < g->several.count; m++)
                if (g->state == GROUP_ACQUIRES && g->several.running &&
                    is_in(g->several.granted, m) &&
                    g->member[m]->name == name &&
                    lease_held(&g->member[m]->life.lease, w->now))
                    return g;
        }
    }
    return NULL;
}

static void look_at(struct world *w, const struct group *first)
{
    const struct group *g = first;
    unsigned name;
    for (unsigned steps = 0; steps < PROCESSES_MAX * GROUPS_MAX; steps++) {
        if (!waits_for(g, &name))
            return;
        g = holder_of(w, name);
        if (!g)
            return;
        if (g == first) {
            checker_broken(w, I6, "c%u waits for itself, by others: n%u",
                first->process->index, name);
            return;
        }
    }
}

void groups_look(struct world *w)
{
    for (unsigned i = 0; i < w->setting.processes; i++)
        for (unsigned j = 0; j < w->setting.groups; j++)
            if (w->process[i].alive)
                look_at(w, &w->process[i].group[j]);
}
