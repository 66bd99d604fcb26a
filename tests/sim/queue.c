/* SPDX-License-Identifier: MIT */
/*
 * The scripts of a line, as a model server carries them out: whole, but what
 * its user may not do fails in the middle of them.
 */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "sim/network.h"
#include "sim/server.h"
#include "sim/world.h"

#define TICKS 4194304 /* 2^22 */

/* ------------------------------------------------------------- line and mark
 */

static struct queue *queue_of(
    const struct world *w, struct model_server *s, unsigned name)
{
    struct queue *q = &s->data.queue[name];
    int64_t now = server_clock_ms(w, s);
    if (now >= q->until_ms)
        q->count = 0;
    if (now >= q->marked_until_ms)
        q->marked_until_ms = 0;
    return q;
}

unsigned queue_length(
    const struct world *w, struct model_server *s, unsigned name)
{
    return queue_of(w, s, name)->count;
}

bool queue_marked(const struct world *w, struct model_server *s, unsigned name)
{
    return queue_of(w, s, name)->marked_until_ms != 0;
}

static bool in_gap(
    const struct world *w, struct model_server *s, const struct queue *q)
{
    int64_t left_ms = q->paced_until_ms - GAP_EVERY_MS - server_clock_ms(w, s);
    bool set_back = left_ms > GAP_MOST_MS && guarded_here(SIM_GUARD_GAP_ENDS);
    return left_ms > 0 && !set_back;
}

/* From now on so many ms of a gap; 0: only the next one is put off. */
static void set_pace(const struct world *w, struct model_server *s,
    struct queue *q, unsigned gap_ms)
{
    q->paced_until_ms = server_clock_ms(w, s) + gap_ms + GAP_EVERY_MS;
}

/* Has the name been handed over for long enough, or, if the end of the last gap
 * seems to be ahead, was the clock set back? */
static bool gap_is_due(
    const struct world *w, struct model_server *s, const struct queue *q)
{
    int64_t left_ms = q->paced_until_ms - server_clock_ms(w, s);
    bool set_back = left_ms > GAP_EVERY_MS && guarded_here(SIM_GUARD_GAP_COMES);
    return left_ms <= 0 || set_back;
}

bool queue_in_gap(const struct world *w, struct model_server *s, unsigned name)
{
    return in_gap(w, s, queue_of(w, s, name));
}

static void mark(const struct world *w, struct model_server *s, struct queue *q)
{
    q->marked_until_ms = server_clock_ms(w, s) + QUEUE_LASTS_MS;
}

static void take_out(struct queue *q, unsigned i)
{
    q->count--;
    memmove(
        &q->place[i], &q->place[i + 1], (q->count - i) * sizeof(q->place[0]));
}

static void drop_dead(struct world *w, struct queue *q, unsigned i)
{
    checker_line_dropped(w, q->place[i].token);
    take_out(q, i);
}

/* Another channel, lease or window is another member. */
static bool is_of(const struct place *p, const struct message *m)
{
    return p->token == m->token && p->channel == m->channel &&
           p->lease_ms == m->ttl_ms && p->window == m->window;
}

/* QUEUE_MAX: it is not there. */
static unsigned place_of(const struct queue *q, const struct message *m)
{
    for (unsigned i = 0; i < q->count; i++)
        if (is_of(&q->place[i], m))
            return i;
    return QUEUE_MAX;
}

static int64_t tick_of(const struct world *w, struct model_server *s)
{
    return server_clock_us(w, s) / (1000000 / WINDOW_TICKS);
}

/* A sign of life in the future counts as one of now. */
static bool is_dead(const struct place *p, int64_t tick)
{
    int64_t silent = ((tick - p->seen) % TICKS + TICKS) % TICKS;
    bool future = silent >= TICKS / 2 && guarded_here(SIM_GUARD_CLOCK_BACK);
    return silent > (int64_t)p->window && !future &&
           guarded_here(SIM_GUARD_WINDOW);
}

/* How many ticks later than its window a member counts as dead that has so many
 * ahead of it. */
static int64_t patience(unsigned ahead, uint32_t window)
{
    if (!guarded_here(SIM_GUARD_FAR_WINDOW))
        return 0;
    int64_t more = (int64_t)window * ahead / 64, room = 480 - (int64_t)window;
    return room < 0 ? 0 : more < room ? more : room;
}

static bool denied(
    const struct world *w, const struct model_server *s, int what)
{
    return w->now < s->denied_until && (int)s->denied == what;
}

/* Might somebody be told? Yes where that cannot be known. */
static bool may_listen(
    const struct world *w, const struct model_server *s, uint64_t channel)
{
    return channel == CHANNEL_NONE || denied(w, s, DENIED_COUNT) ||
           conn_listeners(s, channel) > 0;
}

/* ----------------------------------------------------------------- hand-over
 */

static void set_key(struct world *w, struct model_server *s, unsigned name,
    const struct place *p)
{
    struct key *key = server_key(w, s, name);
    struct message grant = {.name = name,
        .token = p->token,
        .ttl_ms = p->lease_ms,
        .sent_at = w->now};
    key->token = p->token;
    key->until_ms = server_clock_ms(w, s) + p->lease_ms;
    checker_set(w, s, &grant);
    note(w, "s%llu hands n%llu over to t%llu", NULL, s->index, name, p->token);
}

static void tell(struct world *w, struct model_server *s, unsigned name,
    const struct place *p, enum message_kind kind)
{
    struct message told = {
        .kind = kind, .name = name, .token = p->token, .channel = p->channel};
    if (p->channel != CHANNEL_NONE && !denied(w, s, DENIED_PUBLISH))
        conn_publish(w, s, &told);
}

/* may_set: whoever asks may set a key. */
static void grant(struct world *w, struct model_server *s, unsigned name,
    unsigned i, bool may_set)
{
    struct queue *q = &s->data.queue[name];
    struct place p = q->place[i];
    if (!guarded_here(SIM_GUARD_GRANT_ORDER))
        tell(w, s, name, &p, MESSAGE_GRANT);
    take_out(q, i);
    if (!may_set)
        return;
    set_key(w, s, name, &p);
    if (guarded_here(SIM_GUARD_GRANT_ORDER))
        tell(w, s, name, &p, MESSAGE_GRANT);
    if (chance(w, 10))
        server_save(s);
}

/* Leaves the name free, if this release has to; false: it is to be granted. */
static bool keeps_free(struct world *w, struct model_server *s,
    const struct message *m, const struct place *first)
{
    struct queue *q = &s->data.queue[m->name];
    bool may_set = !denied(w, s, DENIED_SET);
    bool due = m->gap_ms > 0 || (m->followed && gap_is_due(w, s, q));
    unsigned gap_ms = m->gap_ms > 0 ? m->gap_ms : GAP_MS;
    due = due && guarded_here(SIM_GUARD_GAP);
    if (due && may_set) {
        set_pace(w, s, q, gap_ms);
        checker_gap_begins(w, m->name, gap_ms);
    } else if (!first->later) {
        return false;
    } else if (may_set) {
        mark(w, s, q);
    }
    tell(w, s, m->name, first, MESSAGE_HINT);
    return true;
}

static void hand_on(struct world *w, struct model_server *s,
    const struct message *m, unsigned i, int64_t marked_until_ms)
{
    struct queue *q = &s->data.queue[m->name];
    bool may_set = !denied(w, s, DENIED_SET);
    bool followed = m->followed && m->gap_ms == 0;
    checker_line_granted(w, s, m->name, i, m, may_set);
    grant(w, s, m->name, i, may_set);
    if (!may_set)
        return;
    if (followed)
        q->marked_until_ms = marked_until_ms; /* it was not touched */
    else if (q->count > 0)
        mark(w, s, q);
    if (!followed && server_clock_ms(w, s) >= q->paced_until_ms)
        set_pace(w, s, q, 0);
}

void queue_hand_over(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = queue_of(w, s, m->name);
    int64_t tick = tick_of(w, s), marked_until_ms = q->marked_until_ms;
    unsigned i = 0;
    bool followed = m->followed && m->gap_ms == 0;
    if (marked_until_ms == 0 && !followed)
        return;
    q->marked_until_ms = 0;
    while (i < q->count) {
        if (is_dead(&q->place[i], tick)) {
            drop_dead(w, q, i);
        } else if (!may_listen(w, s, q->place[i].channel)) {
            i++; /* it keeps its place */
        } else {
            struct place first = q->place[i];
            if (!keeps_free(w, s, m, &first))
                hand_on(w, s, m, i, marked_until_ms);
            return;
        }
    }
    if (i > 0)
        mark(w, s, q);
}

bool queue_leave(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = queue_of(w, s, m->name);
    unsigned i = place_of(q, m);
    if (i == QUEUE_MAX)
        return false;
    take_out(q, i);
    if (q->count == 0)
        q->marked_until_ms = 0;
    return true;
}

/* ------------------------------------------------------------- join and stay
 */

static bool has_it(struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    int64_t until = server_clock_ms(w, s) + m->ttl_ms;
    if (key->token != m->token)
        return false;
    if (until > key->until_ms || !guarded_here(SIM_GUARD_NEVER_SHORTEN))
        key->until_ms = until;
    m->outcome.kind = OUTCOME_GRANTED;
    checker_vouched(w, s, m, m->ttl_ms);
    return true;
}

/* Those behind the last one that is looked at do not pile up: every eighth that
 * joins looks at 16. */
static void drop_some_dead(
    struct world *w, struct model_server *s, struct queue *q, unsigned ticket)
{
    int64_t tick = tick_of(w, s);
    if (ticket % 8 != 0 || q->count == 0)
        return;
    unsigned at = ticket * 2 % q->count;
    for (unsigned i = at + 16; i > at; i--)
        if (i <= q->count && is_dead(&q->place[i - 1], tick))
            drop_dead(w, q, i - 1);
}

/* How many are ahead of it in line, or behind whom it joins; QUEUE_MAX: it is
 * not in line, and must not join. */
static unsigned line_up(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = queue_of(w, s, m->name);
    unsigned i = place_of(q, m), ahead = i;
    if (i == QUEUE_MAX && m->kind != MESSAGE_JOIN)
        return QUEUE_MAX;
    if (i == QUEUE_MAX) {
        ahead = q->count;
        unsigned ticket = q->count ? q->place[q->count - 1].ticket + 1 : 1;
        drop_some_dead(w, s, q, ticket);
        if (q->count == QUEUE_MAX)
            abort(); /* so many do not wait in any world */
        i = q->count++;
        q->place[i] = (struct place){.token = m->token,
            .channel = m->channel,
            .lease_ms = m->ttl_ms,
            .window = m->window,
            .ticket = ticket};
    }
    q->place[i].seen = (tick_of(w, s) + patience(ahead, m->window)) % TICKS;
    checker_line_seen(w, s, m, ahead);
    q->until_ms = server_clock_ms(w, s) + QUEUE_LASTS_MS;
    if (q->marked_until_ms == 0 && !in_gap(w, s, q) &&
        q->paced_until_ms > server_clock_ms(w, s) + GAP_EVERY_MS)
        set_pace(w, s, q, 0); /* the clock was set back */
    if (q->marked_until_ms != 0 || !in_gap(w, s, q) ||
        !guarded_here(SIM_GUARD_GAP_KEPT))
        mark(w, s, q);
    return ahead;
}

static unsigned told_place(unsigned ahead)
{
    return ahead == 0 || guarded_here(SIM_GUARD_PLACE) ? ahead : 1;
}

/* Looks who is first, and grants the name if it is free. ahead: as line_up().
 */
static void look_ahead(struct world *w, struct model_server *s,
    struct message *m, int64_t left, unsigned ahead)
{
    struct queue *q = &s->data.queue[m->name];
    int64_t tick = tick_of(w, s);
    unsigned i = 0;
    while (!is_of(&q->place[i], m) &&
           (is_dead(&q->place[i], tick) ||
               !may_listen(w, s, q->place[i].channel))) {
        if (is_dead(&q->place[i], tick))
            drop_dead(w, q, i);
        else
            i++;
    }
    bool first = is_of(&q->place[i], m);
    bool gap = q->marked_until_ms == 0;
    m->outcome.left_ms =
        left == LEFT_UNKNOWN && gap
            ? q->paced_until_ms - GAP_EVERY_MS - server_clock_ms(w, s)
            : left;
    m->outcome.ahead = first ? 0 : ahead > 0 ? told_place(ahead) : 1;
    if (left != LEFT_UNKNOWN || gap || q->place[i].later)
        return;
    checker_line_granted(w, s, m->name, i, NULL, true);
    if (!first) {
        m->outcome.left_ms = q->place[i].lease_ms;
        grant(w, s, m->name, i, true);
        return;
    }
    take_out(q, i);
    if (q->count == 0)
        q->marked_until_ms = 0;
    struct key *key = server_key(w, s, m->name);
    key->token = m->token;
    key->until_ms = server_clock_ms(w, s) + m->ttl_ms;
    m->outcome.kind = OUTCOME_GRANTED;
    checker_set(w, s, m);
}

/* A line before a token joins it, or if it is there already. */
struct end_of_line {
    unsigned count;
    bool has_it;
    struct place last; /* if count > 0 */
};

static struct end_of_line end_of(const struct queue *q, const struct message *m)
{
    struct end_of_line end = {
        .count = q->count, .has_it = place_of(q, m) != QUEUE_MAX};
    if (end.count > 0)
        end.last = q->place[end.count - 1];
    return end;
}

/* A token that joins while the lock is taken looks no further than to the one
 * before it, if that can be told. False: it has to. */
static bool looks_back(struct world *w, struct model_server *s,
    struct message *m, int64_t left, const struct end_of_line *before)
{
    const struct place *last = &before->last;
    if (left == LEFT_UNKNOWN || before->has_it)
        return false;
    if (before->count > 0 &&
        (is_dead(last, tick_of(w, s)) || !may_listen(w, s, last->channel)))
        return false;
    m->outcome.left_ms = left;
    m->outcome.ahead = told_place(before->count);
    return true;
}

void queue_wait(struct world *w, struct model_server *s, struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    int64_t left =
        key->token ? key->until_ms - server_clock_ms(w, s) : LEFT_UNKNOWN;
    if (has_it(w, s, m))
        return;
    struct end_of_line before = end_of(queue_of(w, s, m->name), m);
    m->outcome.kind = OUTCOME_NOT_MINE;
    unsigned ahead = line_up(w, s, m);
    if (ahead == QUEUE_MAX)
        return;
    m->outcome.kind = OUTCOME_BUSY;
    if (!looks_back(w, s, m, left, &before))
        look_ahead(w, s, m, left, ahead);
    m->outcome.no_listener = m->outcome.kind == OUTCOME_BUSY && m->test &&
                             !may_listen(w, s, m->channel);
    if (m->kind == MESSAGE_JOIN && chance(w, 10))
        server_save(s);
}
