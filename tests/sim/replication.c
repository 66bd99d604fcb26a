/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the data of a replica are those of its primary after a write, and all
 * writes before that; a write counts for the checker when as many replicas have
 * it as the clients want, whatever WAIT says.
 */
#include "sim/replication.h"

#include <stdlib.h>

#include "sim/network.h"
#include "sim/world.h"

#define LAG_MOST (3000 * MS)
#define AWAY_MOST (3000 * MS)
#define RESYNC_MOST (500 * MS)
#define RETRY (50 * MS)

static unsigned count_of(const struct replication *r, int state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r->count; i++)
        count += (int)r->replica[i].state == state;
    return count;
}

static unsigned have(const struct replication *r, uint64_t offset)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r->count; i++)
        count += r->replica[i].offset >= offset;
    return count;
}

static void count_followers(struct world *w, struct replication *r)
{
    if (count_of(r, REPLICA_FOLLOWS) < w->setting.wait_replicas)
        r->enough_since = 0;
    else if (r->enough_since == 0)
        r->enough_since = w->now;
}

/* ------------------------------------------------------------------ writes */

static void log_add(struct replication *r, struct logged_write written)
{
    if (r->logged == r->room) {
        r->room = r->room ? 2 * r->room : 16;
        r->log = realloc(r->log, r->room * sizeof(*r->log));
        if (!r->log)
            abort();
    }
    r->log[r->logged++] = written;
}

void replication_promises(
    struct world *w, struct model_server *s, uint64_t token, uint64_t deadline)
{
    if (s->replication && w->setting.wait_replicas > 0)
        log_add(s->replication,
            (struct logged_write){s->offset + 1, token, deadline});
}

/* Enough replicas have some of what was written. */
static void note_copied(struct world *w, struct model_server *s)
{
    struct replication *r = s->replication;
    size_t kept = 0;
    for (size_t i = 0; i < r->logged; i++) {
        const struct logged_write *one = &r->log[i];
        if (have(r, one->offset) < w->setting.wait_replicas)
            r->log[kept++] = *one;
        else
            checker_copied(w, s, one);
    }
    r->logged = kept;
}

/* It gets all that was written. */
static void catch_up(struct world *w, struct replica *r)
{
    struct model_server *s = r->primary;
    server_copy_data(&r->data, &s->data);
    r->offset = s->offset;
    r->due = false;
    note_copied(w, s);
    replication_goes_on(w, s);
}

static void rings(struct world *w, struct alarm *alarm)
{
    struct replica *r = list_entry(alarm, struct replica, alarm);
    const struct model_server *s = r->primary;
    if (s->down || s->replica) {
        alarm_set(w, alarm, w->now + RETRY);
        return;
    }
    r->state = REPLICA_FOLLOWS;
    catch_up(w, r);
    count_followers(w, s->replication);
}

static void becomes(
    struct world *w, struct replica *r, int state, uint64_t for_ns)
{
    r->state = (__typeof__(r->state))state;
    r->due = false;
    alarm_set(w, &r->alarm, w->now + 1 + roll(w, for_ns));
    count_followers(w, r->primary->replication);
}

void replication_wrote(
    struct world *w, struct model_server *s, struct message *m)
{
    struct replication *r = s->replication;
    m->wrote = ++s->offset;
    m->epoch = s->epoch;
    if (!r)
        return;
    if (m->kind == MESSAGE_BEGIN || m->kind == MESSAGE_TELL)
        log_add(r, (struct logged_write){m->wrote, m->token, 0});
    for (unsigned i = 0; i < r->count; i++) {
        struct replica *one = &r->replica[i];
        if (one->state != REPLICA_FOLLOWS || one->due)
            continue;
        one->due = true;
        alarm_set(w, &one->alarm, w->now + 1 + roll(w, one->delay_ns));
    }
}

/* -------------------------------------------------------------------- WAIT */

static unsigned copies_of_former(
    const struct world *w, const struct model_server *s, uint64_t offset)
{
    unsigned count = 0, connected = replication_connected(w, s);
    for (unsigned i = 0; i < s->had_count; i++)
        count += s->had[i] >= offset;
    return count < connected ? count : connected;
}

unsigned replication_copies(const struct world *w, const struct conn *c)
{
    const struct model_server *s = c->server;
    const struct replication *r = s->replication;
    unsigned count = 0;
    if (!r)
        return copies_of_former(w, s, c->wrote);
    for (unsigned i = 0; i < r->count; i++)
        count += r->replica[i].state != REPLICA_GONE &&
                 r->replica[i].offset >= c->wrote;
    return count;
}

bool replication_must_wait(const struct world *w, struct conn *c,
    const struct message *m, uint64_t *until)
{
    if (!c->waits_until)
        c->waits_until = w->now + ms_to_ns(m->ttl_ms);
    *until = c->waits_until;
    bool over = c->server->replica || w->now >= c->waits_until ||
                replication_copies(w, c) >= m->number;
    if (over)
        c->waits_until = 0;
    return !over;
}

void replication_goes_on(struct world *w, struct model_server *s)
{
    for (struct list *n = s->conns.next; n != &s->conns; n = n->next) {
        struct conn *c = list_entry(n, struct conn, node);
        if (c->waits_until && !list_empty(&c->up.messages))
            alarm_set(w, &c->up.alarm, w->now);
    }
}

/* -------------------------------------------------------------- what happens
 */

void replication_start(struct world *w, struct model_server *s)
{
    if (!w->setting.replicated)
        return;
    struct replication *r = s->replication = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->count = w->setting.replicas;
    r->enough_since = w->now;
    for (unsigned i = 0; i < r->count; i++) {
        r->replica[i].primary = s;
        r->replica[i].delay_ns = chance(w, 70) ? 2 * MS : 60 * MS;
        alarm_init(w, &r->replica[i].alarm, rings);
    }
}

void replication_end(struct world *w, struct model_server *s)
{
    struct replication *r = s->replication;
    if (!r)
        return;
    for (unsigned i = 0; i < r->count; i++)
        alarm_end(w, &r->replica[i].alarm);
    free(r->log);
    free(r);
    s->replication = NULL;
}

unsigned replication_connected(
    const struct world *w, const struct model_server *s)
{
    const struct replication *r = s->replication;
    unsigned count = s->replicas;
    if (r)
        return r->count - count_of(r, REPLICA_GONE);
    if (!s->replicas_since || w->now < s->replicas_since)
        count = 0;
    return s->woken_at && w->now > s->woken_at && count > 0 ? count - 1 : count;
}

void replication_leave(
    const struct model_server *s, struct model_server *former)
{
    const struct replication *r = s->replication;
    if (!r)
        return;
    former->replication = NULL;
    former->had_count = 0;
    for (unsigned i = 0; i < r->count; i++)
        if (r->replica[i].state != REPLICA_GONE)
            former->had[former->had_count++] = r->replica[i].offset;
    former->replicas = former->had_count;
    former->replicas_since = 1;
}

static void forget_later(struct replication *r, uint64_t offset)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->logged; i++)
        if (r->log[i].offset <= offset)
            r->log[kept++] = r->log[i];
    r->logged = kept;
}

void replication_cut(struct world *w, struct model_server *s, bool lost)
{
    struct replication *r = s->replication;
    if (!r)
        return;
    for (unsigned i = 0; i < r->count; i++)
        if (r->replica[i].state != REPLICA_GONE)
            becomes(w, &r->replica[i], REPLICA_GONE, RESYNC_MOST);
    if (!lost)
        return;
    r->logged = 0;
    s->epoch++;
    checker_forgets_copies(w);
}

bool replication_complete(const struct model_server *s)
{
    return !s->replication || count_of(s->replication, REPLICA_FOLLOWS) > 0;
}

/* Those that fail together with the primary, a bit each: so many of those that
 * are not gone. */
static unsigned failing(
    struct world *w, const struct replication *r, unsigned n)
{
    unsigned mask = 0;
    while (n > 0) {
        unsigned i = (unsigned)roll(w, r->count);
        if (mask & 1u << i || r->replica[i].state == REPLICA_GONE)
            continue;
        mask |= 1u << i;
        n--;
    }
    return mask;
}

/* The survivor that has most of the data, or any. */
static struct replica *elected(
    struct world *w, struct replication *r, unsigned failed, bool any)
{
    struct replica *best = NULL;
    for (unsigned i = 0; i < r->count; i++) {
        struct replica *one = &r->replica[i];
        if (one->state == REPLICA_GONE || failed & 1u << i)
            continue;
        if (!best || (any ? chance(w, 50) : one->offset > best->offset))
            best = one;
    }
    return best;
}

static void take_over(
    struct world *w, struct model_server *s, struct replica *best)
{
    struct replication *r = s->replication;
    server_copy_data(&s->data, &best->data);
    s->offset = best->offset;
    s->epoch++;
    forget_later(r, s->offset);
    for (unsigned i = 0; i < r->count; i++) {
        struct replica *one = &r->replica[i];
        one->offset = earlier(one->offset, s->offset);
        if (one->state != REPLICA_GONE)
            becomes(w, one, REPLICA_GONE, RESYNC_MOST);
    }
    best->offset = 0; /* of the former primary, which comes back as one */
    checker_rewound(w, s);
    s->forgot_at = w->now;
    checker_line_forgets(w);
}

/* Where work is done once, no more servers fail at a time than the clients
 * reckon with: nothing else protects a record. */
bool replication_can_elect(const struct world *w, const struct model_server *s)
{
    const struct replication *r = s->replication;
    if (!r)
        return true;
    unsigned gone = count_of(r, REPLICA_GONE);
    return gone < r->count &&
           (!w->setting.once || gone + 1 <= w->setting.wait_replicas);
}

void replication_elect(struct world *w, struct model_server *s)
{
    struct replication *r = s->replication;
    unsigned gone = count_of(r, REPLICA_GONE), alive = r->count - gone;
    unsigned wanted = w->setting.wait_replicas;
    unsigned more = chance(w, 60) ? (unsigned)roll(w, alive) : 0;
    if (w->setting.once)
        more = (unsigned)earlier(more, wanted - 1 - gone);
    unsigned failed = failing(w, r, more);
    bool any = !w->setting.once && chance(w, 20);
    struct replica *best = elected(w, r, failed, any);
    note(w, "s%llu: a replica takes over with the writes up to %llu of %llu",
        NULL, s->index, best->offset, s->offset);
    if (!any && 1 + gone + more <= wanted)
        checker_failover(w, s, best);
    checker_lost_writes(w, s, best);
    take_over(w, s, best);
    for (unsigned i = 0; i < r->count; i++)
        if (failed & 1u << i || &r->replica[i] == best)
            becomes(w, &r->replica[i], REPLICA_GONE, AWAY_MOST);
}

bool replication_trouble(struct world *w, struct model_server *s)
{
    struct replication *r = s->replication;
    struct replica *one = &r->replica[roll(w, r->count)];
    uint64_t what = roll(w, 3);
    if (what == 0) {
        s->scripts = 0;
        return true;
    }
    if (one->state != REPLICA_FOLLOWS)
        return false;
    bool lags = what == 1;
    becomes(w, one, lags ? REPLICA_LAGS : REPLICA_GONE,
        chance(w, 50) ? LAG_MOST : 200 * MS);
    note(w, "s%llu: a replica", lags ? "lags" : "is gone", s->index);
    return true;
}

void replication_heal(struct world *w, struct model_server *s)
{
    struct replication *r = s->replication;
    for (unsigned i = 0; r && i < r->count; i++)
        if (r->replica[i].state != REPLICA_FOLLOWS)
            alarm_set(w, &r->replica[i].alarm, w->now + 1);
}
