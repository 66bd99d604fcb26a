/* SPDX-License-Identifier: MIT */
/*
 * Keeps: what a server says about its history is true, and what it does not
 * know it does not say. A former primary that is woken carries out what had
 * come, and does not know yet that the replica which was promoted has left it.
 * It does from then on, but goes on as a primary until it is told otherwise;
 * then its connections end.
 */
#include "sim/promotion.h"

#include <stdlib.h>

#include "sim/client.h"
#include "sim/replication.h"
#include "sim/sentinels.h"
#include "sim/server.h"
#include "sim/world.h"

#define YEARS_MS (INT64_C(400) * 86400000)
/* By how much the clock of a new primary is off that of the former one. Ahead
 * by less than half of the drift of a lease of a second when data are handed
 * over: then the guard lasts a second, and otherwise longer. */
#define AHEAD (40 * MS)
#define BEHIND (200 * MS)
/* A former primary that was woken learns after so long at most that it is one.
 */
#define TOLD_LATE (1500 * MS)

static uint64_t new_id(struct world *w)
{
    return 1 + roll(w, UINT64_MAX - 1);
}

static void begin_history(
    struct world *w, struct model_server *s, uint64_t replid, uint64_t second)
{
    s->replid = replid;
    s->replid2 = second;
    s->primary_since = w->now;
    /* Its replicas have to connect again; it may have none. */
    s->replicas_since = chance(w, 50) ? w->now + 1 + roll(w, 500 * MS) : 0;
    s->replicas = (unsigned)roll_from(w, 1, 3);
}

void promotion_begins(struct world *w, struct model_server *s, uint64_t second)
{
    begin_history(w, s, new_id(w), second);
}

static void take_over(struct world *w, struct alarm *alarm);

/* A replica's data take the place of the primary's, if there is one. */
static void lose_writes(struct world *w, struct model_server *s)
{
    if (!s->replication)
        server_rewind(w, s);
    else if (replication_can_elect(w, s))
        replication_elect(w, s);
}

void promotion_start(struct world *w, struct model_server *s)
{
    begin_history(w, s, new_id(w), chance(w, 20) ? new_id(w) : 0);
    alarm_init(w, &s->takes_over, take_over);
}

void promotion_end(struct world *w, struct model_server *s)
{
    alarm_end(w, &s->takes_over);
}

void promotion_restarted(
    struct world *w, struct model_server *s, bool with_data)
{
    bool second = with_data && chance(w, 50);
    begin_history(w, s, new_id(w), second ? s->replid : 0);
}

/* --------------------------------------------------------- former processes */

/* It was told that it is a replica now. */
static void demoted(struct world *w, struct alarm *alarm)
{
    server_drop_conns(w, list_entry(alarm, struct model_server, takes_over));
}

/* Nothing protects a client that cannot see that a replica has left: it has not
 * asked since that replica came, or connects to a process that stands still. */
static void drop_unaware_conns(struct world *w, struct model_server *s)
{
    struct list *node = s->conns.next, *next;
    for (; node != &s->conns; node = next) {
        next = node->next;
        struct conn *c = list_entry(node, struct conn, node);
        bool aware =
            !c->link || (c->link->state == LINK_UP &&
                            c->link->replicas == replication_connected(w, s));
        if (!aware)
            conn_drop(w, c, false);
    }
}

static void wake_at(struct world *w, struct model_server *former, uint64_t at)
{
    uint64_t told_at = at + 1;
    former->woken_at = 0;
    if (replication_connected(w, former) > 0 && at > former->replaced_at) {
        former->woken_at = at;
        told_at += roll(w, TOLD_LATE);
    }
    former->stopped_until = at;
    alarm_set(w, &former->takes_over, told_at);
}

/* Often it is woken when somebody has just asked it: that is the time in which
 * its answers do harm. */
void promotion_asked(struct world *w, struct model_server *s)
{
    uint64_t at = w->now + 1 + roll(w, ms_to_ns(LINEAGE_SLACK_MS));
    if (w->now < s->replaced_at || at >= s->stopped_until || !chance(w, 50))
        return;
    wake_at(w, s, at);
    for (struct list *n = s->conns.next; n != &s->conns; n = n->next) {
        struct conn *c = list_entry(n, struct conn, node);
        if (list_empty(&c->up.messages))
            continue;
        struct message *m =
            list_entry(c->up.messages.next, struct message, node);
        alarm_set(w, &c->up.alarm, later(at, m->arrives));
    }
}

/* The process at the address stands still, with its connections, its data and
 * what is on the way to it; so s can be another one, at that time. */
static void leave_behind(
    struct world *w, struct model_server *s, uint64_t promoted_at)
{
    struct model_server *former = calloc(1, sizeof(*former));
    if (!former)
        abort();
    drop_unaware_conns(w, s);
    *former = *s;
    former->former = true;
    replication_leave(s, former);
    former->replaced_at = promoted_at;
    list_init(&former->conns);
    list_init(&former->others);
    while (!list_empty(&s->conns)) {
        struct list *node = list_pop(&s->conns);
        list_entry(node, struct conn, node)->server = former;
        list_append(&former->conns, node);
    }
    list_append(&w->formers, &former->others);
    alarm_init(w, &former->up_again, NULL);
    alarm_init(w, &former->takes_over, demoted);
    /* Often not for long: clients give up a connection that does not answer. */
    uint64_t longest = chance(w, 60)
                           ? 2 * w->setting.patience_ns
                           : 4 * ms_to_ns(w->setting.max_ttl_ms) + 4000 * MS;
    wake_at(w, former, w->now + 1 + roll(w, longest));
    s->earlier_run_id = 0; /* this process will not be promoted again */
}

void promotions_end(struct world *w)
{
    struct list *node;
    while ((node = list_pop(&w->formers))) {
        struct model_server *former =
            list_entry(node, struct model_server, others);
        alarm_end(w, &former->takes_over);
        server_end(w, former);
        free(former);
    }
}

/* ---------------------------------------------------------------- failovers */

/* The process that was the primary is gone from the address. */
static void another_process(struct world *w, struct model_server *s)
{
    uint64_t was = s->run_id;
    s->run_id =
        s->earlier_run_id && chance(w, 50) ? s->earlier_run_id : new_id(w);
    s->earlier_run_id = was;
    s->next_client += 1 + roll(w, 1000000);
    s->scripts = 0;
    s->stopped_until = s->slow_until = s->refusing_until = 0;
}

/* Its clock is another one, and what stands there ends by it. */
static void another_clock(
    struct world *w, struct model_server *s, uint64_t ahead)
{
    int64_t off = (int64_t)roll(w, BEHIND + ahead) - (int64_t)BEHIND;
    int64_t error = server_clock_error(w, s);
    if (error > (int64_t)BEHIND)
        off = -(int64_t)roll(w, BEHIND);
    else if (error < -(int64_t)BEHIND)
        off = (int64_t)roll(w, ahead);
    server_step_clock(w, s, off);
    s->stepped_at = 0;
}

static void drop_busy_conns(struct world *w, struct model_server *s)
{
    struct list *node = s->conns.next, *next;
    for (; node != &s->conns; node = next) {
        next = node->next;
        struct conn *c = list_entry(node, struct conn, node);
        if (!list_empty(&c->up.messages))
            conn_drop(w, c, chance(w, 50));
    }
}

/* A replica, whose data are there already, becomes the primary. For a while the
 * address may lead to another replica, which follows the new primary already,
 * and says so. */
static void promote_lossy(struct world *w, struct model_server *s)
{
    begin_history(w, s, new_id(w), s->replid);
    another_clock(w, s, 400 * MS);
    another_process(w, s);
    if (chance(w, 70))
        return;
    s->replica = true;
    alarm_set(w, &s->takes_over, w->now + 1 + roll(w, 300 * MS));
}

/* The address leads to the new primary from now on. */
static void take_over(struct world *w, struct alarm *alarm)
{
    struct model_server *s = list_entry(alarm, struct model_server, takes_over);
    if (s->lost) {
        s->lost = s->down = false;
        promote_lossy(w, s);
        return;
    }
    if (s->returns) {
        drop_busy_conns(w, s);
        lose_writes(w, s);
        begin_history(w, s, new_id(w), s->replid);
    } else {
        server_drop_conns(w, s);
        replication_cut(w, s, false);
        if (s->hands_over)
            another_clock(w, s, AHEAD);
        another_process(w, s);
    }
    s->replica = s->hands_over = s->returns = false;
    note(w, "s%llu is promoted, run_id %llu, history %llu", NULL, s->index,
        s->run_id % 10000, s->replid % 10000);
}

/* It becomes a replica, loses writes, and is promoted again. Its connections
 * stay, but for those that have commands on the way: nothing protects against a
 * command that is on its way all the while. */
static void returns(struct world *w, struct model_server *s)
{
    begin_history(w, s, new_id(w), 0);
    s->replica = s->returns = true;
    replication_goes_on(w, s);
    alarm_set(w, &s->takes_over,
        w->now + ms_to_ns(LINEAGE_SLACK_MS) + roll(w, 1500 * MS));
}

bool promotion_lossy(struct world *w, struct model_server *s)
{
    if (s->replica)
        return false;
    if (chance(w, 20)) {
        returns(w, s);
        return true;
    }
    if (!replication_can_elect(w, s))
        return false;
    if (chance(w, 40)) {
        server_drop_conns(w, s);
        lose_writes(w, s);
        promote_lossy(w, s);
        return true;
    }
    /* That it stands still is only found out after a while. */
    uint64_t promoted_at =
        w->now + 2 * ms_to_ns(LINEAGE_SLACK_MS) + roll(w, 1000 * MS);
    leave_behind(w, s, promoted_at);
    lose_writes(w, s);
    s->lost = s->down = true;
    alarm_set(w, &s->takes_over, promoted_at);
    return true;
}

bool promotion_hand_over(struct world *w, struct model_server *s)
{
    if (s->replica || !replication_complete(s))
        return false;
    begin_history(w, s, new_id(w), s->replid);
    s->replica = s->hands_over = true;
    replication_goes_on(w, s);
    alarm_set(w, &s->takes_over, w->now + 1 + roll(w, 1500 * MS));
    return true;
}

bool promotion_free_backlog(struct world *w, struct model_server *s)
{
    uint64_t longest = 2 * ms_to_ns(w->setting.max_ttl_ms) + 2000 * MS;
    if (s->replica || s->replication || w->now < s->primary_since + longest)
        return false;
    s->replid = new_id(w);
    s->replid2 = 0;
    s->replicas_since = 0;
    return true;
}

/* ------------------------------------------------------------ what is asked */

static int64_t age_by_marker(
    struct world *w, struct model_server *s, int64_t least_ms)
{
    struct marker *m = &s->data.marker;
    int64_t now_ms = server_clock_ms(w, s);
    bool same = m->replid == s->replid || !guarded_here(SIM_GUARD_MARKER);
    int64_t age = m->replid && same && now_ms >= m->set_ms &&
                          now_ms < m->set_ms + YEARS_MS
                      ? (int64_t)m->age_ms + now_ms - m->set_ms
                      : 0;
    if (age < least_ms || !m->replid || !same)
        *m = (struct marker){
            s->replid, now_ms, later((uint64_t)age, (uint64_t)least_ms)};
    return age > least_ms ? age : least_ms;
}

void promotion_tell(struct world *w, struct model_server *s, struct message *m)
{
    m->replica = s->replica;
    m->replid = s->replid;
    m->replid2 = s->replid2;
    m->clock_ns = server_clock_us(w, s) * 1000;
    m->replicas = s->replica     ? 0
                  : w->sentinels ? sentinels_replicas(w, s)
                                 : replication_connected(w, s);
    m->primary_s = 0;
    if (s->replica || !s->replid2 || s->replid == m->known)
        return;
    bool by_links = !w->sentinels || !guarded(GUARD_NAMED);
    if (by_links && s->replicas_since &&
        w->now > s->replicas_since + 2 * NS_PER_S)
        m->primary_s = (int64_t)((w->now - s->replicas_since) / NS_PER_S) - 1;
    if (m->primary_s < (int64_t)m->needed_s) {
        int64_t age_s = age_by_marker(w, s, 0) / 1000;
        m->primary_s = age_s > m->primary_s ? age_s : m->primary_s;
    }
}

void promotion_mark(struct world *w, struct model_server *s, struct message *m)
{
    if (m->replid == s->replid)
        (void)age_by_marker(w, s, (int64_t)m->number);
}
