/* SPDX-License-Identifier: MIT */
/*
 * A waiter that is alive keeps its place (I15), a dead one is passed over
 * (I16), all together ask no more than is documented (I17), and programs
 * outside the line get their turn (I18). checker.h has these whole.
 *
 * Invariant: what counts is what was sent and when it arrived, and the numbers
 * of docs/guarantees.md and nxlock.h, not those of the code that is on trial.
 */
#include "sim/checker.h"
#include "sim/world.h"

/* What is documented: a waiter asks every tenth of its TTL, within these
 * limits, and counts as dead after three of them; for each 64 that are ahead
 * both are once more as long, up to here. */
#define BEAT_MIN (100 * MS)
#define BEAT_MAX (3000 * MS)
#define BEAT_FAR (5000 * MS)
#define SILENT_FAR_MS 15000
#define PLACES 64
/* The first one, and whoever is not told, asks as often as that. */
#define LOOK (50 * MS)
/* Hand-overs may go on for so long without a gap; and it lasts no longer than
 * that. */
#define GAP_DUE_MS 7500
#define GAP_LONGEST_MS 1000
/* A clock that runs wrong by one percent, and a tick. */
#define SLACK_MS(ms) ((ms) / 100 + 1000 / WINDOW_TICKS + 2)

static uint64_t beat_of(uint32_t ttl_ms)
{
    return later(BEAT_MIN, earlier(BEAT_MAX, ttl_ms / 10 * MS));
}

static uint64_t longer(uint64_t ns, unsigned ahead)
{
    return ns + ns * ahead / PLACES;
}

/* Steps of the clock to another time of day are beyond what is promised. */
static bool steps_forward(const struct world *w)
{
    return w->options.troubles & 1u << TROUBLE_SKEW;
}

/* ------------------------------------------------------- signs of life: I16 */

void checker_line_seen(struct world *w, struct model_server *s,
    const struct message *m, unsigned ahead)
{
    struct token *t = checker_facts(&w->checker, m->token);
    uint64_t window_ms = m->window * UINT64_C(1000) / WINDOW_TICKS;
    uint64_t most_ms = later(window_ms, SILENT_FAR_MS);
    t->seen_ms = server_clock_ms(w, s);
    t->silent_ms = (uint32_t)earlier(longer(window_ms, ahead), most_ms);
    t->ahead = ahead;
}

static void check_silence(struct world *w, struct model_server *s,
    const struct token *t, uint64_t token)
{
    int64_t silent_ms = server_clock_ms(w, s) - t->seen_ms;
    if (!t->strayed && !steps_forward(w) &&
        silent_ms > (int64_t)(t->silent_ms + SLACK_MS(t->silent_ms)))
        checker_broken(w, I16,
            "n%u is handed over to t%llu, which was silent for %lld ms",
            t->name, (unsigned long long)token, (long long)silent_ms);
}

/* ------------------------------------------------ a place that is kept: I15 */

/* Its worker waits for it in line, and has been able to show that for long
 * enough. */
static const struct worker *well_waiter(struct world *w, uint64_t token)
{
    if (token >= w->checker.tokens) /* no client of this world made it */
        return NULL;
    const struct token *t = checker_facts(&w->checker, token);
    const struct process *p = &w->process[t->process];
    if (w->stopping || t->outside || t->strayed || !p->alive ||
        p->life != t->life)
        return NULL;
    const struct worker *k = &p->worker[t->worker];
    uint64_t since = w->progress.reached[p->index][0];
    if (k->token != token || !k->life.running || !life_in_line(&k->life) ||
        !k->line.in_line || since == NEVER)
        return NULL;
    since = later(later(since, p->paused_until), k->began);
    return w->now > since + LINE_RETRY_MAX + w->setting.patience_ns +
                        4 * w->setting.travel_ns
               ? k
               : NULL;
}

void checker_line_dropped(struct world *w, uint64_t token)
{
    const struct worker *k = steps_forward(w) ? NULL : well_waiter(w, token);
    if (k)
        checker_broken(w, I15,
            "c%u.%u waits, and its t%llu is taken out of the line of n%u",
            k->process->index, k->index, (unsigned long long)token, k->name);
}

static void check_order(struct world *w, struct model_server *s,
    const struct queue *q, unsigned place)
{
    for (unsigned i = 0; i < place && !steps_forward(w); i++) {
        const struct place *p = &q->place[i];
        const struct worker *k = well_waiter(w, p->token);
        if (k &&
            (p->channel == CHANNEL_NONE || conn_listeners(s, p->channel) > 0))
            checker_broken(w, I15, "c%u.%u is passed over in the line of n%u",
                k->process->index, k->index, k->name);
    }
}

void checker_line_unmarked(struct world *w, unsigned name)
{
    w->checker.unmarked[name] = true;
    w->checker.held_back[0][name].least = 0;
}

void checker_line_marked(struct world *w, unsigned name)
{
    w->checker.unmarked[name] = false;
}

void checker_passes_line(struct world *w, struct model_server *s, unsigned name)
{
    const struct queue *q = &s->data.queue[name];
    if (!w->checker.unmarked[name] && !w->checker.of_former)
        check_order(w, s, q, queue_length(w, s, name));
}

/* --------------------------------------------------- how often they ask: I17
 */

void checker_line_told(struct world *w, const struct worker *k)
{
    w->checker.load[k->process->index][k->index] = (struct load){.told = true};
}

void checker_line_heard(
    struct world *w, const struct worker *k, const struct outcome *o)
{
    uint64_t beat = beat_of(k->life.terms.ttl_ms), pause = LOOK;
    uint64_t ahead = checker_facts(&w->checker, k->token)->ahead;
    struct load *load = &w->checker.load[k->process->index][k->index];
    load->least_at = 0;
    if (o->kind != OUTCOME_BUSY || load->told)
        return;
    if (k->channel != CHANNEL_NONE && o->ahead > 0)
        pause = later(beat, earlier(BEAT_FAR, longer(beat, (unsigned)ahead)));
    else if (o->left_ms >= 0) /* it asks when that is over */
        pause = earlier(pause, ms_to_ns((uint64_t)o->left_ms));
    load->least_at = w->now + pause - pause / 10;
}

/* Near the end of a wait it asks once more, so that its answer is fresh. */
void checker_line_asks(struct world *w, const struct worker *k)
{
    struct load *load = &w->checker.load[k->process->index][k->index];
    uint64_t end = k->line.terms.wait_until;
    bool ends = end <= w->now + w->setting.patience_ns + LAST_REQUEST_SLACK;
    w->sum.asked++;
    if (w->now < load->least_at && !ends)
        checker_broken(w, I17,
            "c%u.%u asks for n%u %llu ms earlier than it has to",
            k->process->index, k->index, k->name,
            (unsigned long long)((load->least_at - w->now) / MS));
    *load = (struct load){0};
}

/* ------------------------------- gaps: I18. Those of a former primary are
 * none.
 */

void checker_line_forgets(struct world *w)
{
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        w->checker.gap[i] = (struct gap){.turn_at = w->now};
        for (unsigned j = 0; j < MAX_SERVERS; j++) {
            w->checker.set_since_ms[j][i] = 0;
            w->checker.held_back[j][i] = (struct held_back){.most = NEVER};
        }
        w->checker.unmarked[i] = true;
    }
}

void checker_clock_set_back(struct world *w)
{
    checker_line_forgets(w);
    for (unsigned i = 0; i < NAMES_MAX; i++)
        w->checker.gap[i].unnoticed = true;
}

/* Somebody sets the free key who does not stand in line. */
void checker_outside(struct world *w, unsigned name)
{
    struct gap *g = &w->checker.gap[name];
    if (w->checker.of_former)
        return;
    g->taken = true;
    g->turn_at = later(g->turn_at, w->now);
}

void checker_gap_begins(struct world *w, unsigned name, unsigned ms)
{
    uint64_t gap = ms_to_ns(ms);
    struct gap *g = &w->checker.gap[name];
    if (w->checker.of_former)
        return;
    /* The server's clock may be too fast by one percent. */
    *g = (struct gap){.from = w->now,
        .until = w->now + gap - gap / 100 - 2 * MS,
        .turn_at = w->now + gap};
    w->sum.gaps++;
}

void checker_gap_heard(struct world *w, unsigned name)
{
    uint64_t longest = ms_to_ns(GAP_LONGEST_MS + SLACK_MS(GAP_LONGEST_MS));
    struct gap *g = &w->checker.gap[name];
    if (w->checker.of_former)
        return;
    if (g->heard == 0)
        g->heard = w->now;
    else if (w->now > g->heard + longest)
        checker_broken(w, I18, "n%u is left to others since %llu, and still",
            name, (unsigned long long)(g->heard / MS));
}

/* In the whole gap somebody asked often enough to find the key free. */
static void check_turn(struct world *w, unsigned name)
{
    struct gap *g = &w->checker.gap[name];
    if (g->from && !g->taken && !w->stopping &&
        strangers_ask(w, name, g->from, g->until - g->from))
        checker_broken(w, I18,
            "n%u was left to others from %llu on, one asked, and got nothing",
            name, (unsigned long long)(g->from / MS));
    g->from = g->until = g->heard = 0;
}

/* The release m hands over, or somebody in line finds the key free (NULL). */
static void check_gap(
    struct world *w, unsigned name, const struct message *m, bool may_set)
{
    struct gap *g = &w->checker.gap[name];
    uint64_t due = ms_to_ns(GAP_DUE_MS + SLACK_MS(GAP_DUE_MS));
    if (w->now < g->until)
        checker_broken(w, I18,
            "n%u is granted in line, though it is left to others until %llu",
            name, (unsigned long long)(g->until / MS));
    else
        check_turn(w, name);
    if (g->unnoticed && m && m->followed && may_set) {
        g->turn_at = later(g->turn_at, w->now);
        g->unnoticed = false;
    }
    if (m && m->followed && may_set && w->now > g->turn_at + due)
        checker_broken(w, I18, "n%u is handed over and over since %llu", name,
            (unsigned long long)(g->turn_at / MS));
    if (!m || !m->followed || !may_set)
        g->turn_at = later(g->turn_at, w->now);
}

void checker_line_granted(struct world *w, struct model_server *s,
    unsigned name, unsigned place, const struct message *release, bool may_set)
{
    const struct queue *q = &s->data.queue[name];
    uint64_t token = q->place[place].token;
    check_silence(w, s, checker_facts(&w->checker, token), token);
    check_order(w, s, q, place);
    checker_joins_in_pause(w, s, name);
    if (!w->checker.of_former)
        check_gap(w, name, release, may_set);
    w->most.in_line = q->count > w->most.in_line ? q->count : w->most.in_line;
}

/* --------------------------------------------------- programs outside: I1 */

void checker_stranger_holds(struct world *w, const struct stranger *g)
{
    for (unsigned i = 0; i < w->setting.processes; i++) {
        for (unsigned j = 0; j < w->setting.workers; j++) {
            const struct worker *k = &w->process[i].worker[j];
            if (k->name == g->name && program_holds(w, k) &&
                !checker_overtaken(w, k))
                checker_broken(w, I1, "n%u is held by stranger %u and c%u.%u",
                    g->name, g->index, i, j);
        }
    }
    for (unsigned i = 0; i < w->setting.strangers; i++)
        if (i != g->index && w->stranger[i].name == g->name &&
            stranger_holds(w, &w->stranger[i]))
            checker_broken(w, I1, "n%u is held by strangers %u and %u", g->name,
                g->index, i);
}
