/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a Sentinel promotes a replica only if a majority has elected it, or a
 * person has asked it to while it reaches a majority, and for one epoch there
 * is one such Sentinel; each names what has the highest epoch that it knows of.
 * A replica that takes over has what its primary had written up to some time
 * before.
 */
#include "sim/sentinels.h"

#include <stdlib.h>

#include "sim/promotion.h"
#include "sim/world.h"

/* A new primary's clock, as in promotion.c. */
#define AHEAD (40 * MS)
#define OFF (200 * MS)
#define DAY_NS (86400 * NS_PER_S)

static struct node *node_of(const struct world *w, const struct model_server *s)
{
    for (unsigned i = 0; i < w->sentinels->nodes; i++)
        if (&w->sentinels->node[i].server == s)
            return &w->sentinels->node[i];
    abort();
}

static unsigned majority(const struct sentinels *all)
{
    return all->count / 2 + 1;
}

/* --------------------------------------------------------------- the parts */

static bool apart(const struct sentinels *all, enum side a, enum side b)
{
    return all->whole_at != 0 && a != SIDE_NONE && b != SIDE_NONE && a != b;
}

uint64_t sentinels_parted(const struct world *w, const struct process *p,
    const struct model_server *s)
{
    const struct sentinels *all = w->sentinels;
    return all && apart(all, all->process_side[p->index], node_of(w, s)->side)
               ? all->whole_at
               : 0;
}

uint64_t sentinels_cut_off(
    const struct world *w, const struct process *p, unsigned sentinel)
{
    const struct sentinels *all = w->sentinels;
    const struct model_sentinel *st = &all->list[sentinel];
    uint64_t cut =
        apart(all, all->process_side[p->index], st->side) ? all->whole_at : 0;
    return later(cut, w->now < st->stopped_until ? st->stopped_until : 0);
}

static bool runs(const struct world *w, const struct node *n)
{
    return !n->server.down && w->now >= n->server.stopped_until;
}

static bool sees(const struct world *w, const struct model_sentinel *st,
    const struct node *n)
{
    return runs(w, n) && !apart(w->sentinels, st->side, n->side);
}

static bool talk(const struct world *w, const struct model_sentinel *a,
    const struct model_sentinel *b)
{
    return w->now >= a->stopped_until && w->now >= b->stopped_until &&
           !apart(w->sentinels, a->side, b->side);
}

/* ------------------------------------------------------------- replication */

static bool is_primary(const struct node *n)
{
    return !n->server.replica;
}

/* Whose writes it gets, directly or not. */
static struct node *source_of(struct sentinels *all, struct node *n)
{
    for (unsigned i = 0; i < all->nodes && !is_primary(n) && !n->stale; i++)
        n = &all->node[n->follows];
    return n;
}

/* Its data are other ones now. */
static void forgets(struct world *w, struct node *n)
{
    if (n->server.former)
        return;
    checker_rewound(w, &n->server);
    n->server.forgot_at = w->now;
    checker_line_forgets(w);
}

/* It keeps what it has got so far. */
static void goes_stale(struct world *w, struct node *n)
{
    struct node *from = source_of(w->sentinels, n);
    if (n->stale || is_primary(n))
        return;
    server_copy_data(&n->server.data,
        chance(w, 60) ? &from->server.data : &from->server.saved);
    n->server.replid = from->server.replid;
    n->stale = true;
    forgets(w, n);
}

/* Who does not run does not notice who is gone, nor who is parted from it. */
static void count_followers(struct world *w)
{
    struct sentinels *all = w->sentinels;
    for (unsigned i = 0; i < all->nodes; i++) {
        struct node *n = &all->node[i];
        for (unsigned j = 0; runs(w, n) && j < all->nodes; j++) {
            const struct node *other = &all->node[j];
            if (j == i || apart(all, n->side, other->side))
                continue;
            n->followers &= ~(1u << j);
            if (runs(w, other) && !is_primary(other) && other->follows == i)
                n->followers |= 1u << j;
        }
    }
}

unsigned sentinels_replicas(const struct world *w, const struct model_server *s)
{
    unsigned count = 0, bits = node_of(w, s)->followers;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

static void follow(struct world *w, struct node *n, unsigned primary)
{
    if (is_primary(n) || n->follows != primary)
        note(w, "node %llu follows node %llu", NULL, n->number, primary);
    if (is_primary(n)) {
        n->server.replica = true;
        n->stale = false;
        server_drop_conns(w, &n->server);
    }
    if (n->follows != primary)
        n->stale = false;
    n->follows = primary;
    if (apart(w->sentinels, n->side, w->sentinels->node[primary].side))
        goes_stale(w, n);
}

/* --------------------------------------------------------------- promotions */

/* The world's server is what most of them name. */
static void look_who_is_named(struct world *w)
{
    struct sentinels *all = w->sentinels;
    for (unsigned i = 0; i < all->nodes; i++) {
        unsigned count = 0;
        for (unsigned j = 0; j < all->count; j++)
            count += all->list[j].named == i;
        if (count < majority(all) || i == all->current)
            continue;
        all->node[all->current].server.former = true;
        all->current = i;
        w->server = &all->node[i].server;
        w->server->former = false;
        note(w, "most name node %llu", NULL, i);
        goes_stale(w, &all->node[i]);
        forgets(w, &all->node[i]);
        return;
    }
}

/* Its clock differs by a little, and is not far off the time of day. */
static void set_clock(
    struct world *w, struct node *n, struct node *former, bool hands_over)
{
    uint64_t ahead = hands_over ? AHEAD : 2 * OFF;
    int64_t error = server_clock_error(w, &former->server);
    int64_t off = (int64_t)roll(w, OFF + ahead) - (int64_t)OFF;
    if (error > (int64_t)OFF)
        off = -(int64_t)roll(w, OFF);
    else if (error < -(int64_t)OFF)
        off = (int64_t)roll(w, ahead);
    server_step_clock(
        w, &n->server, error + off - server_clock_error(w, &n->server));
    n->server.stepped_at = 0;
}

/* Does what the one had written become that of the other one? */
static bool takes_all(const struct world *w, struct node *n, struct node *from)
{
    return runs(w, from) && is_primary(from) && !n->stale &&
           !apart(w->sentinels, n->side, from->side);
}

/* The primary has stopped to write and has become a replica; the other one has
 * all its data. */
static void hand_over(struct world *w, struct node *from, struct node *to)
{
    server_copy_data(&to->server.data, &from->server.data);
    forgets(w, to);
    to->stale = true;
    promotion_begins(w, &from->server, from->server.replid);
    to->server.replid2 = from->server.replid2;
    to->server.replid = from->server.replid;
    from->server.replica = true;
    from->follows = to->number;
    note(
        w, "node %llu hands over to node %llu", NULL, from->number, to->number);
}

static void promote(struct world *w, struct model_sentinel *st, struct node *n)
{
    struct sentinels *all = w->sentinels;
    struct node *from = &all->node[n->follows];
    uint64_t replid = n->server.replid, second = n->server.replid2;
    if (!st->hands_over) {
        goes_stale(w, n);
        promotion_begins(w, &n->server, n->server.replid);
    } else {
        promotion_begins(w, &n->server, second);
        n->server.replid = replid;
    }
    set_clock(w, n, from, st->hands_over);
    server_drop_conns(w, &n->server);
    n->server.replica = false;
    n->follows = n->number;
    n->stale = false;
    note(w, "Sentinel %llu promotes node %llu", NULL, st->index, n->number);
    for (unsigned i = 0; i < all->nodes; i++)
        if (!is_primary(&all->node[i]) && sees(w, st, &all->node[i]))
            follow(w, &all->node[i], n->number);
    count_followers(w);
}

/* ---------------------------------------------------------------- Sentinels */

static void name(
    struct world *w, struct model_sentinel *st, unsigned node, uint64_t epoch)
{
    st->named = node;
    st->epoch = epoch;
    st->seen_epoch = later(st->seen_epoch, epoch);
    st->since = (int64_t)w->now;
    st->answered_at = w->now;
    st->leads = LEADS_NOT;
    note(w, "Sentinel %llu names node %llu, epoch %llu", NULL, st->index, node,
        epoch);
    look_who_is_named(w);
}

static void learn(struct world *w, struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    const struct model_sentinel *other = &all->list[roll(w, all->count)];
    if (talk(w, st, other) && other->epoch > st->epoch)
        name(w, st, other->named, other->epoch);
}

static void lead(
    struct world *w, struct model_sentinel *st, uint64_t epoch, bool hands_over)
{
    note(w, "Sentinel %llu leads, epoch %llu", NULL, st->index, epoch);
    st->leads = LEADS;
    st->leads_epoch = epoch;
    st->hands_over = hands_over;
    st->leads_until = w->now + w->sentinels->pause_ns;
    st->goes_on_at = w->now + roll_from(w, 20 * MS, 600 * MS);
}

/* The epoch that is new to all whom it reaches; 0: these are no majority.
 * They know it from then on. */
static uint64_t new_epoch(struct world *w, struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    unsigned reached = 0;
    uint64_t epoch = 0;
    for (unsigned i = 0; i < all->count; i++) {
        if (!talk(w, st, &all->list[i]))
            continue;
        reached++;
        epoch = later(epoch, all->list[i].seen_epoch + 1);
    }
    if (reached < majority(all))
        return 0;
    for (unsigned i = 0; i < all->count; i++)
        if (talk(w, st, &all->list[i]))
            all->list[i].seen_epoch = epoch;
    return epoch;
}

static bool finds_down(const struct world *w, const struct model_sentinel *st)
{
    return w->now > st->answered_at + w->sentinels->down_after_ns;
}

/* A majority finds the primary down, and a majority votes for st. */
static void stand_for_election(struct world *w, struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    unsigned agree = 0, votes = 0;
    st->tries_at = w->now + 1 + roll(w, all->pause_ns);
    for (unsigned i = 0; i < all->count; i++) {
        const struct model_sentinel *other = &all->list[i];
        if (!talk(w, st, other))
            continue;
        agree += other->named == st->named && finds_down(w, other);
        votes += w->now >= other->votes_from;
    }
    if (agree < majority(all) || votes < majority(all))
        return;
    uint64_t epoch = new_epoch(w, st);
    for (unsigned i = 0; i < all->count; i++)
        if (talk(w, st, &all->list[i]))
            all->list[i].votes_from = w->now + all->pause_ns;
    lead(w, st, epoch, false);
}

/* Also one that is a primary already, and is not known to be one. */
static struct node *choose(struct world *w, const struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    unsigned first = (unsigned)roll(w, all->nodes);
    for (unsigned i = 0; i < all->nodes; i++) {
        struct node *n = &all->node[(first + i) % all->nodes];
        if (n->number != st->named && sees(w, st, n))
            return n;
    }
    return NULL;
}

static void part(struct world *w, uint64_t for_ns);

/* Who has just promoted is often cut off together with the promoted one. */
static void part_promoter(
    struct world *w, const struct model_sentinel *st, struct node *n)
{
    struct sentinels *all = w->sentinels;
    for (unsigned i = 0; i < all->count; i++)
        all->list[i].side = &all->list[i] == st ? SIDE_ONE : SIDE_OTHER;
    for (unsigned i = 0; i < all->nodes; i++)
        all->node[i].side = i == n->number || (i != st->named && chance(w, 50))
                                ? SIDE_ONE
                                : SIDE_OTHER;
    for (unsigned i = 0; i < w->setting.processes; i++)
        all->process_side[i] = chance(w, 30)   ? SIDE_ONE
                               : chance(w, 20) ? SIDE_NONE
                                               : SIDE_OTHER;
    part(w, roll(w, 3 * ms_to_ns(w->setting.max_ttl_ms) + 6000 * MS));
}

/* The leader goes on when it is time. */
static void go_on(struct world *w, struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    struct node *n = &all->node[st->chosen];
    switch (st->leads) {
    case LEADS_NOT:
        return;
    case LEADS:
        n = choose(w, st);
        if (!n)
            break;
        st->chosen = n->number;
        st->hands_over =
            st->hands_over && takes_all(w, n, &all->node[st->named]) &&
            sees(w, st, &all->node[st->named]) && n->follows == st->named;
        if (st->hands_over)
            hand_over(w, &all->node[st->named], n);
        st->leads = PROMOTES;
        st->goes_on_at = w->now + roll(w, 300 * MS);
        return;
    case PROMOTES:
        if (!sees(w, st, n))
            break;
        if (!is_primary(n))
            promote(w, st, n);
        st->leads = PROMOTED;
        st->goes_on_at = w->now + roll(w, 1000 * MS);
        if (all->whole_at == 0 && w->faults.allowed & 1u << TROUBLE_PART &&
            !w->stopping && chance(w, 15))
            part_promoter(w, st, n);
        return;
    case PROMOTED:
        name(w, st, n->number, st->leads_epoch);
        return;
    }
    if (w->now >= st->leads_until)
        st->leads = LEADS_NOT;
}

/* What it sees behave as if it were the primary, for long, becomes a replica;
 * and what follows another one follows the primary. */
static void fix(struct world *w, struct model_sentinel *st)
{
    struct sentinels *all = w->sentinels;
    const struct node *named = &all->node[st->named];
    bool sane = is_primary(named) && sees(w, st, named);
    for (unsigned i = 0; i < all->nodes; i++) {
        struct node *n = &all->node[i];
        bool right =
            i == st->named || (!is_primary(n) && n->follows == st->named);
        if (right || !sane || !sees(w, st, n) || st->leads != LEADS_NOT) {
            st->other_since[i] = 0;
            continue;
        }
        if (st->other_since[i] == 0)
            st->other_since[i] = w->now;
        if (w->now < st->other_since[i] + all->fix_ns)
            continue;
        st->other_since[i] = 0;
        follow(w, n, st->named);
    }
}

static void turn(struct world *w, struct alarm *alarm)
{
    struct model_sentinel *st = list_entry(alarm, struct model_sentinel, turn);
    const struct node *named = &w->sentinels->node[st->named];
    if (w->now < st->stopped_until) {
        alarm_set(w, alarm, st->stopped_until);
        return;
    }
    alarm_set(w, alarm, w->now + 1 + roll(w, st->period_ns));
    count_followers(w);
    if (is_primary(named) && sees(w, st, named))
        st->answered_at = w->now;
    if (st->leads != PROMOTED)
        learn(w, st);
    if (w->now >= st->goes_on_at)
        go_on(w, st);
    if (st->leads == LEADS_NOT && finds_down(w, st) && w->now >= st->tries_at)
        stand_for_election(w, st);
    fix(w, st);
}

struct said sentinels_say(const struct world *w, unsigned sentinel)
{
    const struct model_sentinel *st = &w->sentinels->list[sentinel];
    return (struct said){
        .node = st->named,
        .for_ms = (uint64_t)((int64_t)w->now - st->since) / MS,
        .same = st->leads != PROMOTED,
    };
}

uint64_t sentinels_calm_since(struct world *w)
{
    struct sentinels *all = w->sentinels;
    bool calm = all->whole_at == 0 && !w->server->replica && !w->server->down &&
                w->now >= w->server->stopped_until;
    for (unsigned i = 0; i < all->count; i++) {
        const struct model_sentinel *st = &all->list[i];
        calm = calm && w->now >= st->stopped_until && st->leads == LEADS_NOT &&
               st->named == all->current;
    }
    if (!calm)
        all->calm_since = 0;
    else if (all->calm_since == 0)
        all->calm_since = w->now;
    return calm ? all->calm_since : NEVER;
}

/* ----------------------------------------------------------------- troubles */

static void heals(struct world *w, struct alarm *alarm)
{
    struct sentinels *all = list_entry(alarm, struct sentinels, heals);
    all->whole_at = 0;
    note(w, "all is whole again", NULL, 0);
    for (unsigned i = 0; i < all->nodes; i++)
        all->node[i].stale = false;
    count_followers(w);
}

/* By the sides that all are on. */
static void part(struct world *w, uint64_t for_ns)
{
    struct sentinels *all = w->sentinels;
    all->whole_at = w->now + 1 + for_ns;
    alarm_set(w, &all->heals, all->whole_at);
    for (unsigned i = 0; i < all->nodes; i++) {
        struct node *n = &all->node[i];
        note(w, "node %llu is on side %llu", NULL, i, n->side);
        if (apart(all, n->side, all->node[n->follows].side))
            goes_stale(w, n);
    }
    for (unsigned i = 0; i < all->count; i++)
        note(w, "Sentinel %llu is on side %llu", NULL, i, all->list[i].side);
    for (unsigned i = 0; i < w->setting.processes; i++)
        note(w, "c%llu is on side %llu", NULL, i, all->process_side[i]);
}

static enum side drawn_side(struct world *w, unsigned one, unsigned none)
{
    uint64_t percent = roll(w, 100);
    return percent < one          ? SIDE_ONE
           : percent < one + none ? SIDE_NONE
                                  : SIDE_OTHER;
}

/* The primary is cut off with some of the others; or, from all but the
 * clients; or it is anybody's guess. */
static bool part_some(struct world *w)
{
    struct sentinels *all = w->sentinels;
    uint64_t kind = roll(w, 10);
    bool alone = kind < 2, any = kind >= 8;
    if (all->whole_at != 0)
        return false;
    for (unsigned i = 0; i < all->nodes; i++)
        all->node[i].side = drawn_side(w, alone ? 0 : any ? 50 : 20, 0);
    if (!any)
        all->node[all->current].side = SIDE_ONE;
    for (unsigned i = 0; i < all->count; i++)
        all->list[i].side = drawn_side(w,
            alone ? 0
            : any ? 40
                  : 25,
            any ? 20 : 0);
    for (unsigned i = 0; i < w->setting.processes; i++)
        all->process_side[i] = drawn_side(w, alone ? 0 : 40, alone ? 90 : 20);
    uint64_t longest = 2 * ms_to_ns(w->setting.max_ttl_ms) + 4000 * MS;
    part(w, all->down_after_ns + roll(w, longest));
    return true;
}

static bool stop_node(struct world *w)
{
    struct sentinels *all = w->sentinels;
    struct node *n =
        &all->node[chance(w, 70) ? all->current : roll(w, all->nodes)];
    uint64_t away = roll(w, 3 * all->down_after_ns + 3000 * MS);
    if (!runs(w, n))
        return false;
    if (chance(w, 30) && is_primary(n)) {
        server_crash(w, &n->server, RESTART_KEEPING, away);
        return true;
    }
    n->server.stopped_until = w->now + away;
    return true;
}

static bool strike_sentinel(struct world *w)
{
    struct sentinels *all = w->sentinels;
    struct model_sentinel *st = &all->list[roll(w, all->count)];
    if (w->now < st->stopped_until)
        return false;
    st->stopped_until = w->now + roll(w, 6000 * MS);
    if (chance(w, 70))
        return true;
    st->leads = LEADS_NOT; /* it is another process with the same file */
    st->since = (int64_t)st->stopped_until;
    return true;
}

/* A person asks one of them to do it. */
static bool plan(struct world *w)
{
    struct sentinels *all = w->sentinels;
    struct model_sentinel *st = &all->list[roll(w, all->count)];
    if (w->now < st->stopped_until || st->leads != LEADS_NOT)
        return false;
    uint64_t epoch = new_epoch(w, st);
    if (epoch)
        lead(w, st, epoch, chance(w, 30));
    return epoch;
}

bool sentinels_trouble(struct world *w, enum trouble trouble)
{
    switch (trouble) {
    case TROUBLE_PART:
        return part_some(w);
    case TROUBLE_STOP:
        return stop_node(w);
    case TROUBLE_SENTINEL:
        return strike_sentinel(w);
    default:
        return plan(w);
    }
}

/* ------------------------------------------------------ beginning and ending
 */

void sentinels_make_room(struct world *w)
{
    struct sentinels *all = calloc(1, sizeof(*all));
    if (!all)
        abort();
    w->sentinels = all;
    all->count = w->setting.sentinels;
    all->nodes = w->setting.nodes;
    w->server = &all->node[0].server;
}

/* The first node is the world's server, and begins as such. */
void sentinels_start(struct world *w)
{
    struct sentinels *all = w->sentinels;
    uint64_t lag = roll_from(w, 100 * MS, 1500 * MS);
    all->down_after_ns = lag + roll_from(w, 500 * MS, 3000 * MS);
    all->pause_ns = roll_from(w, 1000 * MS, 4000 * MS);
    all->fix_ns = roll_from(w, 300 * MS, 5000 * MS);
    alarm_init(w, &all->heals, heals);
    for (unsigned i = 0; i < all->nodes; i++) {
        struct node *n = &all->node[i];
        n->number = i;
        if (i == 0)
            continue;
        server_start(w, &n->server, 0);
        n->server.former = n->server.replica = true;
    }
    for (unsigned i = 0; i < all->count; i++) {
        struct model_sentinel *st = &all->list[i];
        st->index = i;
        st->period_ns = roll_from(w, 20 * MS, lag);
        st->since = (int64_t)w->now - (int64_t)DAY_NS;
        st->answered_at = w->now;
        alarm_init(w, &st->turn, turn);
        alarm_set(w, &st->turn, w->now + 1 + roll(w, st->period_ns));
    }
    count_followers(w);
}

void sentinels_end(struct world *w)
{
    struct sentinels *all = w->sentinels;
    for (unsigned i = 0; i < all->nodes; i++) {
        all->node[i].server.former = false;
        server_end(w, &all->node[i].server);
    }
    for (unsigned i = 0; i < all->count; i++)
        alarm_end(w, &all->list[i].turn);
    alarm_end(w, &all->heals);
    free(all);
    w->sentinels = NULL;
    w->server = NULL;
}
