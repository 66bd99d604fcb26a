/* SPDX-License-Identifier: MIT */
/*
 * The sorted set of a lock that several have, in the order of steps of
 * src/wire/scripts/grant.lua and drop.lua; and the scripts take, extend,
 * release, inspect and cap_ttl for a token that shares its lock.
 */
#include "sim/holders.h"

#include <stdlib.h>

#include "sim/network.h"
#include "sim/server.h"
#include "sim/world.h"

struct share share_of(const struct world *w, uint64_t token)
{
    if (token >= w->checker.tokens) /* no client of this world made it */
        return (struct share){0, 0};
    return checker_facts(&w->checker, token)->share;
}

static uint64_t limit_of(struct share share)
{
    if (share.weight == 0)
        return 1;
    return share.permits ? share.permits : NO_LIMIT;
}

static bool same(struct share a, struct share b)
{
    return a.weight == b.weight && a.permits == b.permits;
}

/* ------------------------------------------------------------ the sorted set
 */

struct holders *holders_of(
    const struct world *w, struct model_server *s, unsigned name)
{
    struct holders *h = &s->data.holders[name];
    if (h->count > 0 && server_clock_ms(w, s) >= h->until_ms)
        h->count = 0;
    return h;
}

static struct holder *find(struct holders *h, uint64_t token)
{
    for (unsigned i = 0; i < h->count; i++)
        if (h->holder[i].token == token)
            return &h->holder[i];
    return NULL;
}

/* ZADD */
static void add(struct holders *h, uint64_t token, int64_t until_ms)
{
    struct holder *known = find(h, token);
    if (!known && h->count == HOLDERS_MAX)
        abort(); /* so many hold a lock in no world */
    if (!known)
        known = &h->holder[h->count++];
    *known = (struct holder){token, until_ms};
}

static void take_out(struct holders *h, unsigned i)
{
    h->holder[i] = h->holder[--h->count];
}

/* ZREMRANGEBYSCORE: those whose lease is over. */
static void drop_ended(struct holders *h, int64_t now_ms)
{
    for (unsigned i = h->count; i > 0; i--)
        if (h->holder[i - 1].until_ms <= now_ms)
            take_out(h, i - 1);
}

static int64_t last_end(const struct holders *h)
{
    int64_t end = 0;
    for (unsigned i = 0; i < h->count; i++)
        if (h->holder[i].until_ms > end)
            end = h->holder[i].until_ms;
    return end;
}

bool holders_peek(const struct world *w, const struct model_server *s,
    unsigned name, uint64_t token)
{
    const struct holders *h = &s->data.holders[name];
    int64_t now_ms = server_peek_ms(w, s);
    if (server_peek(w, s, name) == token)
        return true;
    for (unsigned i = 0; i < h->count && now_ms < h->until_ms; i++)
        if (h->holder[i].token == token && now_ms < h->holder[i].until_ms)
            return true;
    return false;
}

/* ----------------------------------------------------------------- its state
 */

static bool pauses(
    const struct world *w, const struct holders *h, int64_t now_ms)
{
    int64_t every_ms = w->setting.pause_every_ms;
    int64_t stands_ms = (now_ms - h->since_ms) % every_ms;
    if (stands_ms < 0) /* the clock was set back */
        stands_ms += every_ms;
    return stands_ms >= every_ms - HOLDERS_PAUSE_MS &&
           guarded_here(SIM_GUARD_PAUSE);
}

static void count_holders(
    const struct world *w, const struct holders *h, struct state *state)
{
    bool ended = guarded_here(SIM_GUARD_LEASE_OVER);
    state->most = h->head.weight ? limit_of(h->head) : NO_LIMIT;
    for (unsigned i = 0; i < h->count; i++) {
        struct share share = share_of(w, h->holder[i].token);
        if (ended && h->holder[i].until_ms <= state->now_ms)
            continue;
        if (h->head.weight)
            share = h->head;
        state->used += share.weight ? share.weight : 1;
        if (limit_of(share) < state->most && guarded_here(SIM_GUARD_SMALLEST))
            state->most = limit_of(share);
    }
}

struct state holders_look(
    const struct world *w, struct model_server *s, unsigned name)
{
    const struct key *key = server_key(w, s, name);
    const struct holders *h = holders_of(w, s, name);
    struct state state = {.is = KEY_FREE, .left_ms = LEFT_UNKNOWN};
    if (key->token != 0) {
        state.is = KEY_ALONE;
        state.token = key->token;
        state.left_ms = key->until_ms - server_clock_ms(w, s);
    } else if (h->count > 0) {
        state.now_ms = server_clock_ms(w, s);
        state.left_ms = h->until_ms - state.now_ms;
        state.ends_ms = last_end(h);
        int64_t off_ms = state.ends_ms - h->until_ms;
        if (off_ms > 50 || off_ms < -50)
            state.now_ms += off_ms;
        count_holders(w, h, &state);
        state.is = state.used > 0 ? KEY_SHARED : KEY_FREE;
        state.pause = pauses(w, h, state.now_ms);
    }
    return state;
}

bool holders_fit(
    const struct world *w, const struct state *state, uint64_t token)
{
    struct share share = share_of(w, token);
    uint64_t most =
        state->most < limit_of(share) ? state->most : limit_of(share);
    if (state->is == KEY_FREE)
        return true;
    return state->is == KEY_SHARED && !state->pause && share.weight &&
           state->used + share.weight <= most;
}

int64_t holders_wait_ms(const struct world *w, struct model_server *s,
    unsigned name, const struct state *state, uint64_t token)
{
    struct holders *h = holders_of(w, s, name);
    int64_t first = 0;
    if (state->is != KEY_SHARED || share_of(w, token).weight == 0)
        return state->left_ms;
    drop_ended(h, state->now_ms);
    for (unsigned i = 0; i < h->count; i++)
        if (i == 0 || h->holder[i].until_ms < first)
            first = h->holder[i].until_ms;
    return first > state->now_ms ? first - state->now_ms : 0;
}

/* --------------------------------------------------- granted, and taken away
 */

static void put_alone(struct world *w, struct model_server *s, unsigned name,
    struct state *state, uint64_t token, uint32_t lease_ms)
{
    struct key *key = server_key(w, s, name);
    holders_of(w, s, name)->count = 0;
    key->token = token;
    key->until_ms = server_clock_ms(w, s) + lease_ms;
    state->is = KEY_ALONE;
    state->token = token;
}

void holders_put(struct world *w, struct model_server *s, unsigned name,
    struct state *state, uint64_t token, uint32_t lease_ms)
{
    struct share share = share_of(w, token);
    struct holders *h = holders_of(w, s, name);
    if (share.weight == 0) {
        put_alone(w, s, name, state, token, lease_ms);
        return;
    }
    if (state->is != KEY_SHARED) {
        int64_t now_ms = server_clock_ms(w, s);
        *state = (struct state){
            .is = KEY_SHARED, .now_ms = now_ms, .most = NO_LIMIT};
        h->count = 0;
        h->head = share;
        h->since_ms = now_ms;
        checker_set_begins(w, s, name);
    } else {
        drop_ended(h, state->now_ms);
        if (!same(h->head, share) && guarded_here(SIM_GUARD_HEAD))
            h->head = (struct share){0, 0};
    }
    int64_t end_ms = state->now_ms + lease_ms;
    if (end_ms > state->ends_ms || !guarded_here(SIM_GUARD_END_PUT))
        state->ends_ms = end_ms;
    h->until_ms = state->ends_ms;
    add(h, token, end_ms);
    if (guarded_here(SIM_GUARD_COUNTS_ON)) {
        state->used += share.weight;
        if (limit_of(share) < state->most)
            state->most = limit_of(share);
    }
    checker_joins_holders(w, s, name);
}

/* Does the token of m hold the lock beside others? *left_ms: its lease. */
static bool have(struct world *w, struct model_server *s,
    const struct state *state, const struct message *m, int64_t *left_ms)
{
    if (state->is != KEY_SHARED)
        return false;
    const struct holder *holder = find(holders_of(w, s, m->name), m->token);
    if (!holder || holder->until_ms <= state->now_ms)
        return false;
    *left_ms = holder->until_ms - state->now_ms;
    return true;
}

bool holders_held(struct world *w, struct model_server *s, struct state *state,
    const struct message *m)
{
    if (state->is == KEY_ALONE && state->token == m->token) {
        struct key *key = server_key(w, s, m->name);
        int64_t until = server_clock_ms(w, s) + m->ttl_ms;
        if (until > key->until_ms || !guarded_here(SIM_GUARD_NEVER_SHORTEN))
            key->until_ms = until;
        return true;
    }
    int64_t left_ms;
    if (state->is != KEY_SHARED || !have(w, s, state, m, &left_ms))
        return false;
    struct holders *h = holders_of(w, s, m->name);
    struct holder *holder = find(h, m->token);
    if (state->now_ms + m->ttl_ms > holder->until_ms ||
        !guarded_here(SIM_GUARD_NEVER_SHORTEN))
        holder->until_ms = state->now_ms + m->ttl_ms;
    if (holder->until_ms > state->ends_ms)
        state->ends_ms = holder->until_ms;
    h->until_ms = state->ends_ms;
    return true;
}

/* The key expires with the last lease. Returns whether there is one. */
static bool ends_with_last(struct holders *h, const struct state *state)
{
    int64_t end_ms = last_end(h);
    if (end_ms <= state->now_ms)
        return false;
    if (guarded_here(SIM_GUARD_END_LEFT))
        h->until_ms = end_ms;
    return true;
}

/* The lease of a holder ends in so many ms, even if that is earlier. */
static void set_lease(struct world *w, struct model_server *s,
    const struct state *state, const struct message *m)
{
    struct holders *h = holders_of(w, s, m->name);
    add(h, m->token, state->now_ms + m->ttl_ms);
    ends_with_last(h, state);
}

/* Takes the lock from a holder. True: others have it still. */
static bool drop(struct world *w, struct model_server *s,
    const struct state *state, const struct message *m)
{
    struct holders *h = holders_of(w, s, m->name);
    struct holder *holder = find(h, m->token);
    take_out(h, (unsigned)(holder - h->holder));
    if (ends_with_last(h, state))
        return true;
    h->count = 0;
    return false;
}

/* -------------------------------------------------------------- its commands
 */

static void granted(struct world *w, struct model_server *s, struct message *m)
{
    m->outcome.kind = OUTCOME_GRANTED;
    checker_set(w, s, m);
    if (chance(w, 10))
        server_save(s);
}

/* Those in line come first. True: somebody in it does not fit. */
static bool line_comes_first(struct world *w, struct model_server *s,
    struct message *m, struct state *state)
{
    struct serving by = {.state = *state};
    bool after_gap = queue_is_paced(w, s, m->name) &&
                     queue_length(w, s, m->name) > 0 &&
                     guarded_here(SIM_GUARD_AFTER_GAP);
    if ((!queue_marked(w, s, m->name) && !after_gap) ||
        !guarded_here(SIM_GUARD_TAKE_BEHIND))
        return false;
    queue_serve(w, s, m->name, &by);
    m->served = by.granted > 0;
    if (m->served)
        *state = holders_look(w, s, m->name);
    return by.stopped;
}

void holders_take(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    if (guarded_here(SIM_GUARD_HELD_FIRST) && holders_held(w, s, &state, m)) {
        m->outcome.kind = OUTCOME_GRANTED;
        checker_vouched(w, s, m, m->ttl_ms);
        return;
    }
    m->outcome.kind = OUTCOME_BUSY;
    if (state.is == KEY_FREE && queue_in_gap(w, s, m->name)) {
        m->outcome.left_ms = queue_gap_ms(w, s, m->name);
        return;
    }
    bool behind = line_comes_first(w, s, m, &state);
    int64_t held_back_ms = behind ? 0 : queue_held_back_ms(w, s, m->name);
    if (held_back_ms > 0) {
        m->held_back = true;
        m->outcome.left_ms = held_back_ms;
        checker_refused_back(w, s, m);
        return;
    }
    if (!behind && !m->may_wait)
        state.pause = false;
    if (behind || !holders_fit(w, &state, m->token)) {
        m->outcome.left_ms = holders_wait_ms(w, s, m->name, &state, m->token);
        if (!behind)
            checker_refused(w, s, m);
        return;
    }
    checker_passes_line(w, s, m->name);
    checker_joins_held_back(w, s, m->name);
    if (m->may_wait)
        checker_joins_in_pause(w, s, m->name);
    if (state.is == KEY_FREE)
        checker_outside(w, m->name);
    holders_put(w, s, m->name, &state, m->token, m->ttl_ms);
    granted(w, s, m);
}

void holders_extend(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (!holders_held(w, s, &state, m))
        return;
    m->outcome.kind = OUTCOME_MINE;
    have(w, s, &state, m, &m->outcome.left_ms);
    checker_vouched(w, s, m, m->ttl_ms);
}

/* Its lease was over; it would come again if the clock was set back. */
static bool drop_over(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct holders *h = holders_of(w, s, m->name);
    struct holder *holder = find(h, m->token);
    if (holder && guarded_here(SIM_GUARD_OVER_IS_GONE))
        take_out(h, (unsigned)(holder - h->holder));
    return holder;
}

void holders_release(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    struct message release = *m;
    int64_t left_ms;
    m->outcome.kind = OUTCOME_MINE;
    if (!have(w, s, &state, m, &left_ms)) {
        bool over = state.is == KEY_SHARED && drop_over(w, s, m);
        if (over || !m->channel || !queue_leave(w, s, m))
            m->outcome.kind = OUTCOME_NOT_MINE;
        return;
    }
    bool pause = state.pause;
    checker_deleted(w, s, m, m->token);
    bool others = drop(w, s, &state, m);
    if (m->plain)
        return;
    /* A gap is made by the last one: in the pause, or when it is time. */
    release.followed = m->followed && !others;
    release.gap_ms = others ? 0 : pause ? GAP_MS : m->gap_ms;
    state = holders_look(w, s, m->name);
    if (!others)
        state.is = KEY_FREE;
    queue_hand_over(w, s, &release, &state);
}

void holders_see(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (!have(w, s, &state, m, &m->outcome.left_ms))
        return;
    m->outcome.kind = OUTCOME_MINE;
    checker_vouched(w, s, m, (uint32_t)m->outcome.left_ms);
}

void holders_cap(struct world *w, struct model_server *s, struct message *m)
{
    struct state state = holders_look(w, s, m->name);
    int64_t left_ms;
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (!have(w, s, &state, m, &left_ms))
        return;
    set_lease(w, s, &state, m);
    m->outcome.kind = OUTCOME_MINE;
    checker_capped(w, s, m);
}
