/* SPDX-License-Identifier: MIT */
/*
 * Keeps: time goes from one alarm to the next and never back; a world ends
 * when enough has happened in it, and then all must be cleaned up.
 */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "sim/promotion.h"
#include "sim/replication.h"
#include "sim/sentinels.h"

#define BEGINNING (UINT64_C(1000) * MS)
#define LONGEST (UINT64_C(900) * NS_PER_S) /* virtual */
#define TURNS_MAX 100000                   /* without time passing */
#define AFTER_ALL (1000 * MS)
#define NAMES_FEW 4 /* of a world without handles of several names */

const struct world_kind world_kinds[] = {
    {.name = "locks"},
    {.name = "once", .once = true},
    {.name = "crowd", .crowd = true},
    {.name = "permits", .permits = true},
    {.name = "readers", .readers = true},
    {.name = "several", .several = true},
    {.name = "failover", .failover = true},
    {.name = "replicas", .replicas = true},
    {.name = "sentinels", .sentinels = true},
    {.name = "permits-failover", .permits = true, .failover = true},
    {.name = "permits-replicas", .permits = true, .replicas = true},
    {.name = "permits-sentinels", .permits = true, .sentinels = true},
};

const struct world_kind *world_kind(const char *name)
{
    for (size_t i = 0; i < sizeof(world_kinds) / sizeof(*world_kinds); i++)
        if (strcmp(world_kinds[i].name, name) == 0)
            return &world_kinds[i];
    return NULL;
}

/* --------------------------------------------------------- time and chance */

void alarm_init(struct world *w, struct alarm *alarm,
    void (*ring)(struct world *w, struct alarm *alarm))
{
    *alarm = (struct alarm){.ring = ring};
    if (!timers_reserve(&w->timers))
        abort();
}

void alarm_set(struct world *w, struct alarm *alarm, uint64_t at)
{
    timer_set(&w->timers, &alarm->timer, at);
}

void alarm_end(struct world *w, struct alarm *alarm)
{
    timers_unreserve(&w->timers, &alarm->timer);
}

uint64_t roll(struct world *w, uint64_t limit)
{
    return backoff_random(&w->dice, limit);
}

uint64_t roll_from(struct world *w, uint64_t least, uint64_t most)
{
    return least + roll(w, most - least + 1);
}

bool chance(struct world *w, unsigned percent)
{
    return roll(w, 100) < percent;
}

static bool allowed(const struct events *only, uint64_t id)
{
    for (size_t i = 0; only && i < only->count; i++)
        if (only->id[i] == id)
            return true;
    return !only;
}

bool event_happens(struct world *w, uint64_t id)
{
    struct events *happened = w->options.happened;
    if (!allowed(w->options.only, id))
        return false;
    if (happened && happened->count < EVENTS_MAX)
        happened->id[happened->count++] = id;
    w->common_dice = w->dice;
    backoff_init(&w->dice, 1, 1, w->options.seed * UINT64_C(0x9e3779b9) + id);
    return true;
}

void event_over(struct world *w)
{
    w->dice = w->common_dice;
}

/* Lets one alarm ring, if it does before end. */
static bool step(struct world *w, uint64_t end)
{
    uint64_t at = timers_next(&w->timers);
    if (at > end)
        return false;
    w->turns = at > w->now ? 0 : w->turns + 1;
    if (w->turns == TURNS_MAX)
        checker_stands_still(w);
    w->now = later(w->now, at);
    if (!w->stopping)
        progress_look(w);
    struct timer *timer = timers_due(&w->timers, w->now);
    if (timer) { /* it was not set to a later time */
        struct alarm *alarm = list_entry(timer, struct alarm, timer);
        alarm->ring(w, alarm);
    }
    return !w->checker.broken;
}

/* ------------------------------------------------------ beginning and ending
 */

static void choose_line(struct world *w)
{
    struct setting *s = &w->setting;
    if (!chance(w, 90))
        return;
    s->in_line = (unsigned)roll_from(w, 50, 100);
    if (chance(w, 10))
        s->listening = LISTENING_DENIED;
    else if (chance(w, 10))
        s->listening = LISTENING_ELSEWHERE;
}

static void choose_work(struct world *w)
{
    struct setting *s = &w->setting;
    s->once = true;
    for (unsigned i = 0; i < NAMES_FEW; i++)
        s->work[i] = (__typeof__(s->work[i]))roll(w, 3);
}

/* 30 to 300 workers, of whom nearly all wait in line for one name. Their beats
 * are longer than in other worlds, and troubles come less often: else a
 * world takes too long to play. */
static void choose_crowd(struct world *w)
{
    struct setting *s = &w->setting;
    s->crowd = true;
    s->processes = (unsigned)roll_from(w, 10, PROCESSES_MAX);
    s->workers = (unsigned)roll_from(w, 3, chance(w, 25) ? WORKERS_MAX : 4);
    s->names = chance(w, 80) ? 1 : 2;
    s->min_ttl_ms = (uint32_t)roll_from(w, 300, 1000);
    s->max_ttl_ms = (uint32_t)roll_from(w, s->min_ttl_ms, 6000);
    s->trouble_ns = roll_from(w, 100 * MS, 1000 * MS);
    s->in_line = (unsigned)roll_from(w, 90, 100);
    s->strangers = (unsigned)roll(w, STRANGERS_MAX + 1);
    s->far_back = chance(w, 30);
}

/* Permits alone; readers and writers; or all of them. A few names, so that many
 * want each. */
static void choose_permits(struct world *w)
{
    struct setting *s = &w->setting;
    uint64_t mix = roll(w, 3);
    s->permits = true;
    s->fences = false;
    s->processes = (unsigned)roll_from(w, 2, 8);
    s->workers = (unsigned)roll_from(w, 1, 4);
    s->names = chance(w, 70) ? 1 : 2;
    s->exclusive = mix == 0 ? 0 : (unsigned)roll_from(w, 10, 40);
    s->sharing = mix == 0 ? 0 : mix == 1 ? 100 - s->exclusive : 30;
    for (unsigned i = 0; i < 2; i++)
        s->limit[i] = (uint32_t)roll_from(w, 2, 6);
    s->pause_every_ms = chance(w, 50) ? HOLDERS_PAUSE_EVERY_MS
                                      : (int64_t)roll_from(w, 400, 3000);
    s->batch = chance(w, 50) ? 0 : (unsigned)roll_from(w, 1, 3);
    s->strangers = chance(w, 40) ? (unsigned)roll_from(w, 1, 2) : 0;
    if (w->options.kind->failover || w->options.kind->replicas ||
        w->options.kind->sentinels)
        s->strangers = 0; /* nothing guards them */
    if (w->options.kind->sentinels)
        s->processes = (unsigned)earlier(s->processes, PROCESSES_FEW);
    if (w->options.servers == 1)
        return;
    /* Over several servers there are no permits, no lines and no strangers. */
    s->exclusive = (unsigned)roll_from(w, 10, 60);
    s->sharing = 100 - s->exclusive;
    s->strangers = 0;
}

/* Some who take turns with a shared lock, which somebody has at any time, and
 * one or two who want it alone. Troubles are rare, so that it is known for how
 * long these wait. */
static void choose_readers(struct world *w)
{
    struct setting *s = &w->setting;
    s->permits = s->readers = true;
    s->fences = false;
    s->processes = (unsigned)roll_from(w, 3, 6);
    s->workers = (unsigned)roll_from(w, 2, 3);
    s->names = 1;
    s->writers = (unsigned)roll_from(w, 1, 2);
    s->in_line = 0;
    s->min_ttl_ms = (uint32_t)roll_from(w, 200, 400);
    s->max_ttl_ms = (uint32_t)roll_from(w, s->min_ttl_ms, 1000);
    s->think_ns = roll_from(w, MS, 10 * MS);
    s->pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
    s->trouble_ns = roll_from(w, 2000 * MS, 5000 * MS);
}

/* Handles that take 2 to 4 of 5 names, beside some of one name. */
static void choose_several(struct world *w)
{
    struct setting *s = &w->setting;
    s->groups = (unsigned)roll_from(w, 1, GROUPS_MAX);
    s->workers = s->groups * MEMBERS_MAX + (unsigned)roll(w, 3);
    s->names = (unsigned)roll_from(w, MEMBERS_MAX, NAMES_MAX);
}

/* Leases that outlast a failover, and connections that are silent for longer
 * than one. */
static void choose_failover(struct world *w)
{
    struct setting *s = &w->setting;
    s->max_ttl_ms = (uint32_t)roll_from(w, s->max_ttl_ms, 4000);
    if (chance(w, 60)) /* the guard is hardly longer, though in whole seconds */
        s->max_ttl_ms = 980 * (uint32_t)roll_from(w, 1, 4);
    s->min_ttl_ms = chance(w, 30) ? s->max_ttl_ms : s->min_ttl_ms;
    s->trouble_ns = roll_from(w, 20 * MS, 800 * MS);
    s->timeout_ns = roll_from(w, s->timeout_ns, 1500 * MS);
    s->patience_ns = 2 * s->timeout_ns;
    if (chance(w, 50))
        s->think_ns = roll_from(w, 500 * MS, 4000 * MS);
    if (chance(w, 20)) /* ... and than the quarantine after it */
        s->think_ns = roll_from(w, 4000 * MS, 12000 * MS);
}

static void choose_replicas(struct world *w)
{
    struct setting *s = &w->setting;
    s->replicated = true;
    s->wait_replicas = (unsigned)roll(w, 3);
    if (w->options.servers == 1 && !s->permits && chance(w, 50)) {
        choose_work(w);
        s->wait_replicas = (unsigned)roll_from(w, 1, 2);
    }
    s->replicas =
        (unsigned)roll_from(w, later(s->wait_replicas, 1), REPLICAS_MAX);
}

/* Of the pauses between failovers some are longer than a quarantine. */
static void choose_sentinels(struct world *w)
{
    struct setting *s = &w->setting;
    s->sentinels = chance(w, 70) ? 3 : 5;
    s->nodes = (unsigned)roll_from(w, 2, NODES_MAX);
    s->trouble_ns = roll_from(w, 100 * MS, 2500 * MS);
}

static void choose(struct world *w)
{
    struct setting *s = &w->setting;
    s->processes = (unsigned)roll_from(w, 2, PROCESSES_FEW);
    s->workers = (unsigned)roll_from(w, 1, WORKERS_FEW);
    s->names = (unsigned)roll_from(w, 1, NAMES_FEW);
    s->min_ttl_ms = (uint32_t)roll_from(w, 60, 300);
    s->max_ttl_ms = (uint32_t)roll_from(w, s->min_ttl_ms, 1500);
    s->drift_ppm = 10000;
    s->timeout_ns = roll_from(w, 100 * MS, 600 * MS);
    s->patience_ns = 2 * s->timeout_ns;
    s->travel_ns = roll_from(w, MS / 10, 5 * MS);
    s->slow_ns = roll_from(w, 20 * MS, 400 * MS);
    s->linger_ns = roll_from(w, MS, 400 * MS);
    s->think_ns = roll_from(w, MS, 200 * MS);
    s->kill_allowed = chance(w, 70);
    s->fences = chance(w, 50) || w->options.fences;
    s->trouble_ns = roll_from(w, 5 * MS, 500 * MS);
    if (w->options.servers == 1)
        choose_line(w);
    if (w->options.servers == 1 && w->options.kind->once)
        choose_work(w);
    if (w->options.servers == 1 && w->options.kind->crowd)
        choose_crowd(w);
    if (w->options.kind->permits)
        choose_permits(w);
    if (w->options.kind->readers)
        choose_readers(w);
    if (w->options.kind->several)
        choose_several(w);
    bool sentinels = w->options.servers == 1 && w->options.kind->sentinels;
    if (w->options.kind->failover || w->options.kind->replicas || sentinels)
        choose_failover(w);
    if (w->options.kind->replicas)
        choose_replicas(w);
    if (sentinels)
        choose_sentinels(w);
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        abort();
    return memory;
}

static void make_room(struct world *w)
{
    const struct setting *s = &w->setting;
    if (s->sentinels)
        sentinels_make_room(w);
    else
        w->server = zeroed(w->options.servers, sizeof(*w->server));
    w->workers = zeroed(s->processes * s->workers, sizeof(*w->workers));
    for (unsigned i = 0; i < s->processes; i++)
        w->process[i].worker = &w->workers[i * s->workers];
}

void world_start(struct world *w, const struct options *options)
{
    *w = (struct world){.options = *options, .now = BEGINNING};
    backoff_init(&w->dice, 1, 1, options->seed);
    w->history.aloud = options->aloud;
    if (options->setting)
        w->setting = *options->setting;
    else
        choose(w);
    w->setting.failover = options->kind->failover || options->kind->replicas ||
                          w->setting.sentinels;
    list_init(&w->formers);
    checker_start(w);
    progress_start(w);
    make_room(w);
    for (unsigned i = 0; i < options->servers; i++)
        server_start(w, &w->server[i], i);
    if (w->sentinels)
        sentinels_start(w);
    troubles_start(w);
    for (unsigned i = 0; i < w->setting.processes; i++)
        process_start(w, &w->process[i], i);
    strangers_start(w);
}

void world_finish(struct world *w)
{
    for (unsigned i = 0; i < w->setting.processes; i++)
        process_end(w, &w->process[i]);
    for (unsigned i = 0; !w->sentinels && i < w->options.servers; i++)
        server_end(w, &w->server[i]);
    if (w->sentinels)
        sentinels_end(w);
    promotions_end(w);
    troubles_end(w);
    strangers_end(w);
    checker_end(w);
    timers_free(&w->timers);
    free(w->server);
    free(w->workers);
}

bool world_pass(struct world *w, uint64_t ns)
{
    uint64_t end = w->now + ns;
    while (step(w, end))
        ;
    w->now = later(w->now, end);
    checker_orphans(w);
    return !w->checker.broken;
}

/* Nothing begins any more, and what hangs goes on. */
static void stop(struct world *w)
{
    note(w, "all stop", NULL, 0);
    w->stopping = true;
    for (unsigned i = 0; i < w->options.servers; i++) {
        struct model_server *s = &w->server[i];
        s->refusing_until = s->slow_until = s->denied_until = w->now;
        server_thaw(w, s);
        replication_heal(w, s);
    }
    for (unsigned i = 0; i < w->setting.processes; i++) {
        struct process *p = &w->process[i];
        for (unsigned j = 0; p->alive && j < w->setting.workers; j++) {
            struct worker *k = &p->worker[j];
            handle_renew_no_more(w, k);
            if (k->life.running && !k->group && k->life.call != CALL_RELEASE)
                handle_cancel(w, k);
        }
        if (p->alive)
            groups_stop(w, p);
        if (p->alive)
            process_turn(w, p);
    }
}

static void clean_up(struct world *w)
{
    uint64_t longest = ms_to_ns(w->setting.max_ttl_ms);
    uint64_t last = w->now; /* when a client may still send what it holds */
    for (unsigned i = 0; i < w->setting.processes; i++)
        last = later(last, w->process[i].paused_until);
    if (w->setting.in_line)
        longest = later(longest, QUEUE_LASTS_MS * MS);
    if (w->setting.permits) /* a late command may hold others back */
        longest = later(longest, w->setting.linger_ns + GAP_MOST_MS * MS);
    if (w->setting.crowd) /* a release may set the mark of a line anew */
        last = later(last, w->now + ms_to_ns(w->setting.max_ttl_ms));
    if (w->sentinels)
        last = later(last, w->sentinels->whole_at);
    uint64_t end = last + longest + longest / 100 + AFTER_ALL;
    while (step(w, end))
        checker_orphans(w);
    if (w->checker.broken)
        return;
    w->now = end;
    checker_leaks(w);
}

static bool enough(const struct world *w)
{
    if (w->options.lasts_ns)
        return false; /* time ends it */
    return w->sum.grants >= w->options.least_grants &&
           w->faults.happened >= w->options.least_troubles &&
           (!w->setting.crowd || w->sum.gaps > 0) &&
           (!w->setting.readers || w->sum.alone >= 3);
}

struct report world_run(const struct options *options, FILE *out)
{
    static struct world world;
    struct world *w = &world;
    world_start(w, options);
    uint64_t longest = w->sentinels ? 4 * LONGEST : LONGEST;
    uint64_t lasts = options->lasts_ns ? options->lasts_ns : longest;
    while (!enough(w) && step(w, BEGINNING + lasts))
        ;
    struct report report = {.too_few = !options->lasts_ns && !enough(w)};
    report.virtual_ns = w->now - BEGINNING;
    if (!w->checker.broken) {
        stop(w);
        clean_up(w);
    }
    report.broken = w->checker.broken;
    memcpy(report.why, w->checker.why, sizeof(report.why));
    w->sum.troubles = w->faults.happened;
    w->sum.steps = w->history.steps;
    w->most.starved_ms = w->progress.starved_ms;
    w->most.waited = w->progress.waited;
    report.sum = w->sum;
    report.most = w->most;
    memcpy(report.each, w->faults.each, sizeof(report.each));
    report.hash = w->history.hash;
    if (out && report.broken) {
        if (!options->aloud)
            history_print(&w->history, 60, out);
        report_print(&report, options, out);
    }
    world_finish(w);
    return report;
}

void report_print(
    const struct report *report, const struct options *options, FILE *out)
{
    fprintf(out, "seed %llu, %u server%s: %s is broken: %s\n",
        (unsigned long long)options->seed, options->servers,
        options->servers == 1 ? "" : "s", invariant_names[report->broken],
        report->why);
}
