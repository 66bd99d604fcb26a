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

/* What has expired of it is gone. */
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

bool queue_is_paced(
    const struct world *w, struct model_server *s, unsigned name)
{
    return server_clock_ms(w, s) < queue_of(w, s, name)->paced_until_ms;
}

int64_t queue_gap_ms(
    const struct world *w, struct model_server *s, unsigned name)
{
    return queue_of(w, s, name)->paced_until_ms - GAP_EVERY_MS -
           server_clock_ms(w, s);
}

static void mark(struct world *w, struct model_server *s, struct queue *q)
{
    checker_line_marked(w, (unsigned)(q - s->data.queue));
    if (q->marked_until_ms == 0)
        q->held_back_until_ms = 0;
    q->marked_until_ms = server_clock_ms(w, s) + QUEUE_LASTS_MS;
}

/* The mark is not of a line. */
static bool holds_back(const struct queue *q)
{
    return q->marked_until_ms != 0 && q->held_back_until_ms != 0;
}

static bool denied(
    const struct world *w, const struct model_server *s, int what)
{
    return w->now < s->denied_until && (int)s->denied == what;
}

void queue_hold_back(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = queue_of(w, s, m->name);
    int64_t ends_ms = server_clock_ms(w, s) + m->hold_back_ms;
    bool others = q->marked_until_ms != 0 && !holds_back(q);
    if (m->hold_back_ms == 0 || holders_of(w, s, m->name)->count == 0 ||
        others || denied(w, s, DENIED_SET) ||
        (holds_back(q) && q->held_back_until_ms >= ends_ms) ||
        !guarded_here(SIM_GUARD_HOLD_BACK))
        return;
    q->held_back_until_ms = ends_ms;
    if (ends_ms > q->marked_until_ms) /* a line may rely on it for longer */
        q->marked_until_ms = ends_ms;
    checker_holds_back(w, s, m->name, m->hold_back_ms);
}

int64_t queue_held_back_ms(
    const struct world *w, struct model_server *s, unsigned name)
{
    const struct queue *q = queue_of(w, s, name);
    int64_t left_ms = q->held_back_until_ms - server_clock_ms(w, s);
    return holds_back(q) && left_ms > 0 && left_ms <= GAP_MOST_MS ? left_ms : 0;
}

bool queue_holds_back(
    const struct world *w, const struct model_server *s, unsigned name)
{
    const struct queue *q = &s->data.queue[name];
    int64_t now_ms = server_peek_ms(w, s);
    return holds_back(q) && now_ms < q->marked_until_ms &&
           now_ms < q->held_back_until_ms &&
           q->held_back_until_ms - now_ms <= GAP_MOST_MS;
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
    const struct place *p, struct state *state)
{
    struct message grant = {.name = name,
        .token = p->token,
        .ttl_ms = p->lease_ms,
        .sent_at = w->now};
    holders_put(w, s, name, state, p->token, p->lease_ms);
    checker_set(w, s, &grant);
    note(w, "s%llu hands n%llu over to t%llu", NULL, s->index, name, p->token);
}

static unsigned batch_of(const struct world *w)
{
    return w->setting.batch ? w->setting.batch : HOLDERS_BATCH;
}

static void tell(struct world *w, struct model_server *s, unsigned name,
    const struct place *p, enum message_kind kind)
{
    struct message told = {
        .kind = kind, .name = name, .token = p->token, .channel = p->channel};
    if (p->channel != CHANNEL_NONE && !denied(w, s, DENIED_PUBLISH))
        conn_publish(w, s, &told);
}

static void grant(struct world *w, struct model_server *s, unsigned name,
    unsigned i, struct serving *by)
{
    struct queue *q = &s->data.queue[name];
    struct place p = q->place[i];
    bool leaves =
        !share_of(w, p.token).weight || guarded_here(SIM_GUARD_LEAVES_LINE);
    if (!guarded_here(SIM_GUARD_GRANT_ORDER))
        tell(w, s, name, &p, MESSAGE_GRANT);
    if (leaves)
        take_out(q, i);
    if (by->denied)
        return;
    set_key(w, s, name, &p, &by->state);
    if (guarded_here(SIM_GUARD_GRANT_ORDER))
        tell(w, s, name, &p, MESSAGE_GRANT);
    if (chance(w, 10))
        server_save(s);
}

/* Whoever asks finds that the lock is granted to its own token. */
static void grant_me(
    struct world *w, struct model_server *s, unsigned i, struct serving *by)
{
    struct queue *q = &s->data.queue[by->me->name];
    take_out(q, i);
    holders_put(w, s, by->me->name, &by->state, by->me->token, by->me->ttl_ms);
    by->me->outcome.kind = OUTCOME_GRANTED;
    checker_set(w, s, by->me);
    by->mine = true;
}

/* The first of the waiters from there on that lives and can be told, or that
 * asks itself. Removes the dead before it. */
static unsigned next_waiter(struct world *w, struct model_server *s,
    unsigned name, unsigned i, const struct message *me)
{
    struct queue *q = &s->data.queue[name];
    int64_t tick = tick_of(w, s);
    while (i < q->count && !(me && is_of(&q->place[i], me))) {
        if (is_dead(&q->place[i], tick))
            drop_dead(w, q, i);
        else if (!may_listen(w, s, q->place[i].channel))
            i++; /* it keeps its place */
        else
            break;
    }
    return i;
}

void queue_serve(
    struct world *w, struct model_server *s, unsigned name, struct serving *by)
{
    struct queue *q = &s->data.queue[name];
    unsigned i = 0;
    for (;;) {
        i = next_waiter(w, s, name, i, by->me);
        if (i == q->count) {
            by->stay = i > 0;
            return;
        }
        struct place *p = &q->place[i];
        bool is_me = by->me && is_of(p, by->me);
        by->at = *p;
        by->at_me = is_me;
        by->stopped = p->later || !holders_fit(w, &by->state, p->token);
        if (!by->stopped && by->granted == batch_of(w)) {
            by->stopped = true;
            if (!is_me)
                tell(w, s, name, p, MESSAGE_ASK);
        }
        if (by->stopped)
            return;
        checker_line_granted(w, s, name, i, by->release, !by->denied);
        if (is_me)
            grant_me(w, s, i, by);
        else
            grant(w, s, name, i, by);
        by->granted += !by->denied;
        if (by->denied || by->state.is == KEY_ALONE)
            return;
        i += !is_me && i < q->count && q->place[i].token == by->at.token;
    }
}

/* Leaves the name free, if this release has to, and there is a line. */
static bool keeps_free(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = &s->data.queue[m->name];
    bool due = m->gap_ms > 0 || (m->followed && gap_is_due(w, s, q));
    unsigned gap_ms = m->gap_ms > 0 ? m->gap_ms : GAP_MS;
    if (!due || !guarded_here(SIM_GUARD_GAP) || denied(w, s, DENIED_SET))
        return false;
    unsigned i = next_waiter(w, s, m->name, 0, NULL);
    if (i == q->count)
        return false;
    set_pace(w, s, q, gap_ms);
    checker_gap_begins(w, m->name, gap_ms);
    tell(w, s, m->name, &q->place[i], MESSAGE_HINT);
    return true;
}

void queue_hand_over(struct world *w, struct model_server *s,
    const struct message *m, const struct state *state)
{
    struct queue *q = queue_of(w, s, m->name);
    int64_t marked_until_ms = q->marked_until_ms;
    bool shared = share_of(w, m->token).weight > 0;
    bool followed = m->followed && m->gap_ms == 0 && !shared;
    struct serving by = {
        .state = *state, .release = m, .denied = denied(w, s, DENIED_SET)};
    if (marked_until_ms == 0 && !followed)
        return;
    /* Over several servers there is no line. */
    bool stays = shared || w->options.servers > 1;
    if (stays && holds_back(q) && q->count == 0 &&
        guarded_here(SIM_GUARD_MARK_STAYS))
        return; /* it is of a client that waits without a line */
    q->marked_until_ms = 0;
    if (state->is == KEY_FREE && keeps_free(w, s, m))
        return;
    queue_serve(w, s, m->name, &by);
    if (by.granted > 0) {
        if (followed)
            q->marked_until_ms = marked_until_ms; /* it was not touched */
        else if (q->count > 0)
            mark(w, s, q);
        bool paces = !followed && !shared;
        if (paces && server_clock_ms(w, s) >= q->paced_until_ms)
            set_pace(w, s, q, 0);
    } else if (by.stopped) {
        if (!by.denied)
            mark(w, s, q);
        if (by.at.later)
            tell(w, s, m->name, &by.at, MESSAGE_HINT);
    } else if (by.stay) {
        mark(w, s, q);
    }
    if (q->count > 0 && q->marked_until_ms == 0)
        checker_line_unmarked(w, m->name);
}

bool queue_leave(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct queue *q = queue_of(w, s, m->name);
    unsigned i = place_of(q, m);
    if (i == QUEUE_MAX)
        return false;
    take_out(q, i);
    struct serving by = {.state = holders_look(w, s, m->name)};
    if (by.state.is == KEY_SHARED) /* those behind it may fit */
        queue_serve(w, s, m->name, &by);
    if (q->count == 0)
        q->marked_until_ms = 0;
    return true;
}

/* ------------------------------------------------------------- join and stay
 */

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

/* Looks who is first, and grants the name to those that fit. ahead: as
 * line_up(). */
static void look_ahead(struct world *w, struct model_server *s,
    struct message *m, struct state *state, unsigned ahead)
{
    struct queue *q = &s->data.queue[m->name];
    bool gap = state->is == KEY_FREE && q->marked_until_ms == 0;
    struct serving by = {.state = *state, .me = m};
    if (gap) {
        by.state.is = KEY_CLOSED;
        state->left_ms =
            q->paced_until_ms - GAP_EVERY_MS - server_clock_ms(w, s);
    }
    queue_serve(w, s, m->name, &by);
    if (by.mine && q->count == 0)
        q->marked_until_ms = 0;
    if (by.mine)
        return;
    if (by.granted > 0)
        *state = holders_look(w, s, m->name);
    m->outcome.ahead = by.stopped && by.at_me ? 0
                       : ahead > 0            ? told_place(ahead)
                                              : 1;
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
    struct message *m, const struct state *state,
    const struct end_of_line *before)
{
    const struct place *last = &before->last;
    if (state->is == KEY_FREE || before->has_it)
        return false;
    if (before->count > 0 &&
        (is_dead(last, tick_of(w, s)) || !may_listen(w, s, last->channel)))
        return false;
    if (before->count == 0 && holders_fit(w, state, m->token))
        return false;
    m->outcome.ahead = told_place(before->count);
    return true;
}

void queue_wait(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    bool looks = state.is != KEY_SHARED || guarded_here(SIM_GUARD_HELD_FIRST);
    if (looks && holders_held(w, s, &state, m)) {
        m->outcome.kind = OUTCOME_GRANTED;
        checker_vouched(w, s, m, m->ttl_ms);
        return;
    }
    struct end_of_line before = end_of(queue_of(w, s, m->name), m);
    m->outcome.kind = OUTCOME_NOT_MINE;
    unsigned ahead = line_up(w, s, m);
    if (ahead == QUEUE_MAX)
        return;
    m->outcome.kind = OUTCOME_BUSY;
    if (!looks_back(w, s, m, &state, &before))
        look_ahead(w, s, m, &state, ahead);
    if (m->outcome.kind == OUTCOME_BUSY)
        m->outcome.left_ms = holders_wait_ms(w, s, m->name, &state, m->token);
    m->outcome.no_listener = m->outcome.kind == OUTCOME_BUSY && m->test &&
                             !may_listen(w, s, m->channel);
    if (m->kind == MESSAGE_JOIN && chance(w, 10))
        server_save(s);
}
