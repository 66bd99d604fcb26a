/* SPDX-License-Identifier: MIT */
/*
 * Keeps: whatever strikes is drawn from the world's dice, and counted only if
 * there was something for it to strike.
 */
#include "sim/trouble.h"

#include <stdio.h>
#include <string.h>

#include "sim/promotion.h"
#include "sim/replication.h"
#include "sim/sentinels.h"
#include "sim/world.h"

#define FAR_OFF ((int64_t)(400 * MS))
/* Longer than a line lasts, and a gap may be. */
#define FAR_BACK (45000 * MS)

#define ROW_OF_LIST(trouble, name, does) {name, does},
static const struct {
    const char *name, *does;
} kinds[] = {TROUBLE_LIST(ROW_OF_LIST)};

void troubles_print(void)
{
    for (unsigned i = 0; i < TROUBLES; i++)
        printf("  %-17s %s\n", kinds[i].name, kinds[i].does);
}

bool troubles_parse(const char *list, unsigned *mask)
{
    *mask = 0;
    for (bool more = true; more;) {
        size_t len = strcspn(list, ",");
        unsigned found = 0;
        for (unsigned i = 0; i < TROUBLES; i++) {
            if (strlen(kinds[i].name) == len &&
                strncmp(kinds[i].name, list, len) == 0)
                found = 1u << i;
        }
        if (len == 3 && strncmp(list, "all", len) == 0)
            found = (1u << TROUBLES) - 1;
        else if (len == 5 && strncmp(list, "clean", len) == 0)
            found = CLEAN_TROUBLES;
        else if (found == 0 && !(len == 4 && strncmp(list, "none", len) == 0))
            return false;
        *mask |= found;
        more = list[len] == ',';
        list += len + 1;
    }
    return true;
}

/* ------------------------------------------------------------- who is struck
 */

static struct model_server *some_server(struct world *w)
{
    struct model_server *s = &w->server[roll(w, w->options.servers)];
    return s->down || s->replica ? NULL : s;
}

static struct process *some_process(struct world *w)
{
    struct process *p = &w->process[roll(w, w->setting.processes)];
    return p->alive && w->now >= p->paused_until ? p : NULL;
}

static struct link *some_link(struct world *w)
{
    struct process *p = some_process(w);
    if (!p)
        return NULL;
    struct link *l = &p->link[roll(w, w->options.servers)];
    return l->conn ? l : NULL;
}

/* --------------------------------------------------------------- what strikes
 */

static bool cut(struct world *w)
{
    struct link *l = some_link(w);
    if (!l || !l->conn->served)
        return false;
    conn_drop(w, l->conn, chance(w, 50));
    return true;
}

static bool cut_late(struct world *w)
{
    struct link *l = some_link(w);
    if (!l)
        return false;
    link_lost(w, l, 1 + roll(w, w->setting.linger_ns));
    process_turn(w, l->process);
    return true;
}

static bool crash(struct world *w, enum restart how)
{
    struct model_server *s = some_server(w);
    if (!s)
        return false;
    uint64_t away = roll_from(w, 2 * MS, chance(w, 50) ? 30 * MS : 1500 * MS);
    if (!chance(w, 25)) {
        server_crash(w, s, how, away);
        return true;
    }
    for (unsigned i = 0; i < w->options.servers; i++) /* a power cut */
        if (!w->server[i].down && !w->server[i].replica)
            server_crash(w, &w->server[i], how, away);
    return true;
}

/* Each clock goes wrong at its own rate until it is far off; then the rate is
 * such that it comes back. So they differ by less than a quarantine lasts. */
static void set_rate(struct world *w, struct model_server *s)
{
    int64_t error = server_clock_error(w, s),
            rate = (int64_t)roll(w, w->setting.failover ? 4900 : 9900);
    bool slower = error > FAR_OFF || (error > -FAR_OFF && chance(w, 50));
    s->rate_ppm = slower ? -rate : rate;
}

/* Backwards as it pleases; forwards by less than what the 2 ms of a lease's
 * drift leave beside two roundings, and not twice in the life of a key. */
static bool step_clock(struct world *w)
{
    struct model_server *s = &w->server[roll(w, w->options.servers)];
    uint64_t rest = 2 * ms_to_ns(w->setting.max_ttl_ms);
    int64_t room = FAR_OFF + server_clock_error(w, s);
    set_rate(w, s);
    if (s->stepped_far_at)
        rest += FAR_BACK;
    if (w->now < s->stepped_at + rest)
        return false;
    s->stepped_back_ms = 0;
    if (w->setting.far_back && !s->stepped_far_at && chance(w, 50)) {
        s->stepped_far_at = w->now;
        server_step_clock(w, s, -(int64_t)roll(w, FAR_BACK));
        return true;
    }
    if (room > 0 && chance(w, 50))
        server_step_clock(w, s, -(int64_t)roll(w, (uint64_t)room));
    else
        server_step_clock(w, s, (int64_t)roll(w, 9 * MS / 10));
    return true;
}

static bool skew(struct world *w)
{
    struct model_server *s = &w->server[roll(w, w->options.servers)];
    uint64_t most = ms_to_ns(w->setting.max_ttl_ms);
    server_step_clock(w, s, (int64_t)roll_from(w, most / 4, most));
    return true;
}

static bool cancel(struct world *w)
{
    struct process *p = some_process(w);
    if (!p)
        return false;
    struct worker *k = &p->worker[roll(w, w->setting.workers)];
    if (k->state != PROGRAM_WAITS)
        return false;
    program_cancel(w, k);
    process_turn(w, p);
    return true;
}

static void refuse(struct world *w, struct model_server *s)
{
    static const enum fault refusals[] = {
        FAULT_RETRY, FAULT_FULL, FAULT_REFUSING, FAULT_NO_PERMISSION};
    s->refusal = refusals[roll(w, 4)];
    s->refusing_until = w->now + roll(w, 500 * MS);
}

static bool strike_server(struct world *w, enum trouble trouble)
{
    struct model_server *s = some_server(w);
    if (!s)
        return false;
    if (trouble == TROUBLE_SLOW)
        s->slow_until = w->now + roll(w, 1500 * MS);
    else if (trouble == TROUBLE_HANG)
        s->stopped_until = w->now + roll(w, 1500 * MS);
    else
        refuse(w, s);
    return true;
}

static bool strike_client(struct world *w, enum trouble trouble)
{
    struct process *p = some_process(w);
    if (!p)
        return false;
    if (trouble == TROUBLE_DEATH)
        process_die(w, p, roll_from(w, MS, 1000 * MS));
    else
        p->paused_until = w->now + roll(w, 2 * ms_to_ns(w->setting.max_ttl_ms));
    return true;
}

/* ------------------------------------------------------------ lines: one
 * server
 */

static bool break_line(struct world *w)
{
    unsigned name = (unsigned)roll(w, w->setting.names);
    struct queue *q = &w->server[0].data.queue[name];
    uint64_t what = roll(w, 3);
    if (q->count == 0 && q->marked_until_ms == 0)
        return false;
    if (what != 0)
        q->count = 0;
    if (what != 1)
        q->marked_until_ms = 0;
    if (what != 1)
        checker_line_unmarked(w, name);
    return true;
}

static bool deafen(struct world *w)
{
    struct process *p = some_process(w);
    if (!p || !p->subscription.conn)
        return false;
    if (chance(w, 50)) {
        conn_drop(w, p->subscription.conn, chance(w, 50));
        return true;
    }
    subscription_lost(w, p, 1 + roll(w, w->setting.linger_ns));
    return true;
}

/* By what is between server and client; so long that the server may restart
 * meanwhile, and vote again. */
static bool hold_up(struct world *w)
{
    struct process *p = some_process(w);
    struct conn *c = p ? p->subscription.conn : NULL;
    if (!c)
        return false;
    uint64_t longest = 4 * ms_to_ns(w->setting.max_ttl_ms) + 4 * NS_PER_S;
    c->held_up_until = later(c->held_up_until, w->now + roll(w, longest));
    return true;
}

static bool deny(struct world *w)
{
    struct model_server *s = &w->server[0];
    s->denied = (unsigned)roll(w, 3);
    s->denied_until = w->now + roll(w, 1500 * MS);
    return true;
}

static bool intrude(struct world *w)
{
    struct model_server *s = some_server(w);
    unsigned name = (unsigned)roll(w, w->setting.names);
    uint32_t ttl_ms = (uint32_t)roll_from(w, 1, w->setting.max_ttl_ms);
    return s && server_intrude(w, s, name, ttl_ms);
}

/* ------------------------------------------------------------- failovers */

static bool fail_over(struct world *w, enum trouble trouble)
{
    struct model_server *s = some_server(w);
    if (!s)
        return false;
    if (trouble == TROUBLE_PROMOTE)
        return promotion_lossy(w, s);
    if (trouble == TROUBLE_SWITCHOVER)
        return promotion_hand_over(w, s);
    if (trouble == TROUBLE_REPLICA)
        return replication_trouble(w, s);
    return promotion_free_backlog(w, s);
}

/* Lines are of one server, and failovers of a world that has them. */
static enum trouble some_trouble(struct world *w)
{
    unsigned kinds_here =
        w->options.servers == 1 ? TROUBLE_PROMOTE : TROUBLE_LINE;
    if (w->sentinels && chance(w, 50))
        return (enum trouble)roll_from(w, TROUBLE_PART, TROUBLES - 1);
    if (!w->setting.failover || w->sentinels)
        return (enum trouble)roll(w, kinds_here);
    unsigned failovers =
        (w->setting.replicated ? TROUBLE_PART : TROUBLE_REPLICA) -
        TROUBLE_PROMOTE;
    uint64_t kind = roll(w, kinds_here + 2 * failovers);
    if (kind < kinds_here)
        return (enum trouble)kind;
    return (enum trouble)(TROUBLE_PROMOTE + (kind - kinds_here) % failovers);
}

static bool strike(struct world *w, enum trouble trouble)
{
    switch (trouble) {
    case TROUBLE_SLOW:
    case TROUBLE_HANG:
    case TROUBLE_REFUSE:
        return strike_server(w, trouble);
    case TROUBLE_CUT:
        return cut(w);
    case TROUBLE_LATE:
        return cut_late(w);
    case TROUBLE_CRASH:
        return crash(w, RESTART_KEEPING);
    case TROUBLE_WIPE:
        return crash(w, RESTART_EMPTY);
    case TROUBLE_REWIND:
        return crash(w, RESTART_REWOUND);
    case TROUBLE_CLOCK:
        return step_clock(w);
    case TROUBLE_PAUSE:
    case TROUBLE_DEATH:
        return strike_client(w, trouble);
    case TROUBLE_CANCEL:
        return cancel(w);
    case TROUBLE_SKEW:
        return skew(w);
    case TROUBLE_LINE:
        return break_line(w);
    case TROUBLE_DEAF:
        return deafen(w);
    case TROUBLE_HELD:
        return hold_up(w);
    case TROUBLE_DENY:
        return deny(w);
    case TROUBLE_STRANGER:
        return intrude(w);
    case TROUBLE_PROMOTE:
    case TROUBLE_SWITCHOVER:
    case TROUBLE_BACKLOG:
    case TROUBLE_REPLICA:
        return fail_over(w, trouble);
    case TROUBLE_PART:
    case TROUBLE_STOP:
    case TROUBLE_SENTINEL:
    case TROUBLE_PLANNED:
        return sentinels_trouble(w, trouble);
    case TROUBLE_APART: /* from the beginning */
    case TROUBLES:
        break;
    }
    return false;
}

static void rings(struct world *w, struct alarm *alarm)
{
    /* They come in storms; in between even a server in quarantine votes
     * again. */
    uint64_t pause = 2 * w->setting.trouble_ns;
    if (chance(w, 15))
        pause = 4 * ms_to_ns(w->setting.max_ttl_ms) + 4 * NS_PER_S;
    if (w->setting.readers && chance(w, 15))
        pause = 30 * NS_PER_S;
    alarm_set(w, alarm, w->now + 1 + roll(w, pause));
    if (w->stopping || !event_happens(w, EVENT_TROUBLE(w->faults.rings++)))
        return;
    enum trouble trouble = some_trouble(w);
    if (w->faults.allowed & 1u << trouble) {
        checker_orphans(w);
        note(w, "trouble:", kinds[trouble].name, 0);
        if (strike(w, trouble)) {
            w->faults.happened++;
            w->faults.struck_at = w->now;
            w->faults.each[trouble]++;
        }
    }
    event_over(w);
}

void troubles_start(struct world *w)
{
    w->faults = (struct troubles){.allowed = w->options.troubles};
    if (w->setting.replicated && w->setting.once)
        w->faults.allowed &= ~FORGETFUL_TROUBLES;
    if (w->setting.far_back) /* fencing numbers cannot bear both (G7) */
        w->faults.allowed &= ~FORGETFUL_TROUBLES;
    alarm_init(w, &w->faults.alarm, rings);
    if (w->faults.allowed)
        alarm_set(w, &w->faults.alarm, w->now + w->setting.trouble_ns);
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct model_server *s = &w->server[i];
        if (w->faults.allowed & 1u << TROUBLE_CLOCK)
            set_rate(w, s);
        for (unsigned j = 1; w->sentinels && j < w->sentinels->nodes; j++)
            if (w->faults.allowed & 1u << TROUBLE_CLOCK)
                set_rate(w, &w->sentinels->node[j].server);
        if (w->faults.allowed & 1u << TROUBLE_APART)
            server_step_clock(w, s, (int64_t)roll(w, 120 * NS_PER_S));
    }
}

void troubles_end(struct world *w)
{
    alarm_end(w, &w->faults.alarm);
}
