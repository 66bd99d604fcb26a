/* SPDX-License-Identifier: MIT */
/*
 * The life of one lock: turns calls, outcomes and the time into actions and
 * events.
 */
#include "core/life.h"

#include "base/deadline.h"
#include "model/guard.h"

/* How long a call that is decided still waits for servers that have not
 * answered. */
#define STRAGGLERS_MAX (50 * NS_PER_MS)

void life_init(struct life *l, const struct life_terms *terms,
    struct ballot *ballots, struct renewal *renewal)
{
    l->terms = *terms;
    l->vote.ballots = ballots;
    l->renewal = renewal;
    l->lease.ends = NEVER;
}

static unsigned bit(unsigned server)
{
    return 1U << server;
}

/* Takes the lowest server out of *set. */
static bool take(unsigned *set, unsigned *server)
{
    if (!*set)
        return false;
    *server = (unsigned)__builtin_ctz(*set);
    *set &= *set - 1;
    return true;
}

static unsigned all_servers(const struct life *l)
{
    return (1U << l->terms.servers) - 1;
}

static void put_event(struct life *l, enum life_event event)
{
    if (l->event_count < LIFE_EVENTS)
        l->events[l->event_count++] = (unsigned char)event;
}

enum life_event life_event(struct life *l)
{
    if (!l->event_count)
        return LIFE_NOTHING;
    enum life_event event = (enum life_event)l->events[0];
    l->event_count--;
    for (unsigned i = 0; i < l->event_count; i++)
        l->events[i] = l->events[i + 1];
    return event;
}

/* ------------------------------------------------------------ one step on */

static void finish(struct life *l, enum life_result result)
{
    l->running = false;
    l->abandoned = false;
    l->result = result;
    put_event(l, LIFE_CALL_OVER);
}

/* The adoption has a quorum. Whatever would still delete the key of the token
 * is cancelled, but only once it is certain that this is possible at every
 * server: otherwise a token without a holder would stay until its TTL. */
static bool claim_if_won(struct life *l, uint64_t now)
{
    if (!call_kinds[l->call].adopts || vote_verdict(&l->vote) != VERDICT_YES ||
        l->vote.round.deadline <= now || l->not_claimed || l->adopted)
        return false;
    if (l->claimed)
        l->to_adopt = all_servers(l);
    else
        l->to_claim = all_servers(l);
    l->adopted = l->claimed;
    l->claimed = true;
    return true;
}

/* The lock is taken: once after each round, the driver may choose to wait in
 * line. */
static bool offer_line(struct life *l)
{
    const struct acquire *a = &l->vote.acquire;
    if (!call_kinds[l->call].acquires || l->vote.line || l->cancelled ||
        l->offered == a->rounds || !acquire_may_line_up(a))
        return false;
    l->offered = a->rounds;
    l->line_due = true;
    return true;
}

/* True: there may be more to do. */
static bool step_call(struct life *l, uint64_t now)
{
    if (!l->running || l->stragglers)
        return false;
    if (l->abandoned) {
        finish(l, LIFE_UNKNOWN);
        return true;
    }
    switch (vote_step(&l->vote, now)) {
    case VOTE_OPEN:
        return offer_line(l);
    case VOTE_GOES_ON:
        if (l->cancelled) /* while the call waited for late servers */
            vote_cancel(&l->vote);
        return true;
    case VOTE_UNDO:
        l->to_abandon |= all_servers(l);
        life_end_removing_key(l, now);
        vote_again(&l->vote, now);
        return true;
    case VOTE_OVER:
        break;
    }
    if (!claim_if_won(l, now))
        finish(l, life_settle(l, now));
    return true;
}

static bool step_renewal(struct life *l, uint64_t now)
{
    if (!l->renewal)
        return false;
    enum renewal_state before = l->renewal->state;
    uint64_t left_ms = deadline_left(l->lease.promised, now) / NS_PER_MS;
    switch (renewal_step(l->renewal, &l->lease, now)) {
    case RENEWAL_RENEWED:
        l->left_ms = left_ms;
        put_event(l, LIFE_RENEWED);
        break;
    case RENEWAL_FAILED:
        put_event(l, LIFE_RENEWAL_FAILED);
        break;
    case RENEWAL_LOST:
        put_event(l, LIFE_LEASE_LOST);
        break;
    case RENEWAL_NOTHING:
        break;
    }
    return l->renewal->state != before;
}

/* ------------------------------------------------------- what is to be done */

/* Do the requests of the call ask for the lock? */
static bool asks_for_lock(const struct life *l)
{
    return call_kinds[l->call].acquires && !vote_past_grant(&l->vote);
}

/* May this server be skipped? Yes, if it cannot have the token. */
static bool skips(const struct life *l, unsigned server)
{
    return (call_kinds[l->call].known_token || vote_past_grant(&l->vote)) &&
           !(l->reached & bit(server));
}

/* After an acquire, that is a server that only began to connect during it. */
static bool may_be_late(const struct life *l, unsigned server)
{
    const struct acquire *a = &l->vote.acquire;
    switch (call_kinds[l->call].stragglers) {
    case STRAGGLERS_NONE:
        break;
    case STRAGGLERS_ALL:
        return l->vote.round.verdict == VERDICT_YES ||
               l->vote.round.verdict == VERDICT_NO;
    case STRAGGLERS_CONNECTING:
        return !vote_past_grant(&l->vote) && a->verdict == VERDICT_YES &&
               l->terms.servers > 1 &&
               l->terms.peers[server].link == PEER_CONNECTING &&
               l->terms.peers[server].since >= a->round_started;
    }
    return false;
}

static uint64_t late_until(const struct life *l, uint64_t now)
{
    const struct acquire *a = &l->vote.acquire;
    uint64_t until = deadline_after(now, STRAGGLERS_MAX);
    if (!call_kinds[l->call].acquires)
        return earlier(until, l->vote.round.terms.end);
    /* At most as long again as the round took. */
    until = earlier(until, deadline_after(now, elapsed(a->round_started, now)));
    return earlier(until, a->terms.end);
}

static const struct outcome not_mine = {
    .kind = OUTCOME_NOT_MINE, .left_ms = LEFT_UNKNOWN};

static void note_send(struct life *l, unsigned server)
{
    if (!asks_for_lock(l))
        return;
    l->reached |= bit(server);
    l->requested |= bit(server);
    l->answered &= ~bit(server);
}

/* False: there is no action for the driver. */
static bool call_action(struct life *l, const struct effect *effect,
    struct action *action, uint64_t now)
{
    *action = (struct action){.track = TRACK_CALL, .server = effect->server};
    switch (effect->kind) {
    case EFFECT_TOKEN:
        action->kind = ACTION_TOKEN;
        lease_new_token(&l->lease);
        l->reached = 0; /* what the last call left is being cleaned up */
        break;
    case EFFECT_SEND:
        action->kind = ACTION_SEND;
        if (skips(l, effect->server)) {
            action->kind = ACTION_SKIP;
            vote_outcome(&l->vote, effect->server, &not_mine, now);
        }
        note_send(l, effect->server);
        break;
    case EFFECT_UNDO:
        action->kind =
            call_kinds[l->call].undone ? ACTION_UNDO : ACTION_ABANDON;
        break;
    case EFFECT_ABANDON:
        action->kind = ACTION_ABANDON;
        if (may_be_late(l, effect->server)) {
            l->stragglers_until =
                l->stragglers ? l->stragglers_until : late_until(l, now);
            l->stragglers |= bit(effect->server);
            return false;
        }
        break;
    }
    return true;
}

static void renewal_action(struct life *l, const struct effect *effect,
    struct action *action, uint64_t now)
{
    *action = (struct action){.track = TRACK_RENEWAL, .server = effect->server};
    action->kind = effect->kind == EFFECT_SEND ? ACTION_SEND : ACTION_ABANDON;
    if (effect->kind == EFFECT_SEND && l->renewal->state == RENEWAL_EXTENDING &&
        !(l->reached & bit(effect->server))) {
        action->kind = ACTION_SKIP;
        renewal_outcome(l->renewal, effect->server, &not_mine, now);
    }
}

/* What has been decided outside the vote, in the order in which it is done. */
static bool decided_action(struct life *l, struct action *action)
{
    if (!(l->to_abandon | l->to_undo | l->to_clean | l->to_claim | l->to_adopt |
            l->token_due | l->line_due))
        return false;
    *action = (struct action){.track = TRACK_CALL};
    if (take(&l->to_abandon, &action->server))
        action->kind = ACTION_ABANDON;
    else if (take(&l->to_undo, &action->server))
        action->kind = ACTION_UNDO;
    else if (take(&l->to_clean, &action->server))
        action->kind = ACTION_CLEAN;
    else if (take(&l->to_claim, &action->server))
        action->kind = ACTION_CLAIM;
    else if (take(&l->to_adopt, &action->server))
        action->kind = ACTION_ADOPT;
    else
        action->kind = l->line_due ? ACTION_LINE : ACTION_TOKEN;
    if (action->kind == ACTION_LINE)
        l->line_due = false;
    if (action->kind == ACTION_TOKEN) {
        l->token_due = false;
        lease_new_token(&l->lease);
    }
    return true;
}

bool life_next(struct life *l, struct action *action, uint64_t now)
{
    struct effect effect;
    for (;;) {
        if (renewal_next(l->renewal, &effect)) {
            renewal_action(l, &effect, action, now);
            return true;
        }
        if (decided_action(l, action))
            return true;
        if (l->running && !l->abandoned && vote_next(&l->vote, &effect)) {
            if (call_action(l, &effect, action, now))
                return true;
            continue;
        }
        if (!step_call(l, now) && !step_renewal(l, now))
            return false;
    }
}

/* ---------------------------------------------------------- what comes back */

void life_outcome(struct life *l, enum life_track track, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (track == TRACK_RENEWAL) {
        renewal_outcome(l->renewal, server, outcome, now);
        return;
    }
    if (!l->running || server >= l->terms.servers)
        return;
    bool busy = outcome->kind == OUTCOME_BUSY;
    l->stragglers &= ~bit(server);
    if (asks_for_lock(l)) {
        l->requested &= ~bit(server);
        if (busy || outcome->kind == OUTCOME_GRANTED)
            l->answered |= bit(server);
        bool refused = busy || outcome->kind == OUTCOME_RECORDED ||
                       (outcome->kind == OUTCOME_FAULT && !outcome->unsure &&
                           !vote_confirms(&l->vote));
        if (refused && !l->vote.line) /* else the token is in line */
            l->reached &= ~bit(server);
    }
    l->found = outcome->found;
    vote_outcome(&l->vote, server, outcome, now);
}

void life_withdrawn(struct life *l, const struct action *action)
{
    if (action->track == TRACK_RENEWAL || l->abandoned)
        return;
    if (action->kind == ACTION_UNDO || call_kinds[l->call].unsent_is_certain)
        vote_withdrawn(&l->vote, action->server);
    else if (asks_for_lock(l) && !l->vote.line)
        l->reached &= ~bit(action->server);
}

void life_no_token(struct life *l)
{
    l->no_token = true;
    vote_cancel(&l->vote);
}

void life_not_claimed(struct life *l)
{
    l->not_claimed = true;
}

void life_tick(struct life *l, uint64_t now)
{
    if (l->stragglers && now >= l->stragglers_until) {
        l->to_abandon |= l->stragglers;
        l->stragglers = 0;
    }
    if (l->running && !l->stragglers)
        vote_tick(&l->vote, now);
    renewal_tick(l->renewal, now);
}

uint64_t life_wake(const struct life *l, enum life_track track)
{
    if (track == TRACK_RENEWAL)
        return renewal_wake(l->renewal);
    if (!l->running)
        return NEVER;
    return l->stragglers ? l->stragglers_until : vote_wake(&l->vote);
}

/* ------------------------------------------------------------- what is sent */

static enum verb_kind verb_of(const struct life *l)
{
    if (life_in_line(l))
        return line_joins(l->vote.line) ? VERB_JOIN : VERB_STAY;
    return vote_verb(
        &l->vote, l->min_hold ? VERB_CAP_TTL : call_kinds[l->call].verb);
}

void life_verb(const struct life *l, enum life_track track, struct verb *verb)
{
    verb->want_left = verb->test_listener = verb->held = verb->doubted = false;
    verb->has_followers = false;
    verb->gap_ms = 0;
    verb->client = (struct slice){NULL, 0};
    verb->window = 0;
    if (track == TRACK_RENEWAL) {
        bool extends = l->renewal->state == RENEWAL_EXTENDING;
        verb->kind = extends ? VERB_EXTEND : VERB_INSPECT;
        verb->ttl_ms = l->renewal->round.terms.ttl_ms;
        verb->not_after = LIMIT_NONE;
        return;
    }
    verb->kind = verb_of(l);
    const struct verb_traits *traits = &verb_traits[verb->kind];
    verb->ttl_ms = l->request_ttl_ms;
    verb->not_after = l->not_after;
    if (traits->waits_in_line) {
        verb->doubted = l->vote.line->doubt;
        verb->ttl_ms = line_lease_ms(&l->vote.line->terms);
        verb->window = line_window(&l->vote.line->terms);
    } else if (traits->may_grant) {
        verb->doubted = acquire_doubts(&l->vote.acquire);
        verb->want_left =
            traits->tells_left && acquire_wants_left(&l->vote.acquire);
    } else if (traits->hands_over) {
        verb->gap_ms = l->gap_ms;
        verb->has_followers = l->handed_over;
    }
    vote_complete(&l->vote, verb);
}

uint64_t life_connect_by(const struct life *l)
{
    return asks_for_lock(l) ? acquire_connect_by(&l->vote.acquire) : NEVER;
}

/* ---------------------------------------------------------------- afterwards
 */

bool life_grant_expired(const struct life *l, uint64_t now)
{
    return call_kinds[l->call].relies && l->result == LIFE_OK &&
           !lease_held(&l->lease, now) && guarded(GUARD_RECHECK);
}

void life_drop_expired(struct life *l, uint64_t now)
{
    l->result = LIFE_LOST;
    if (l->call == CALL_EXTEND)
        lease_lose(&l->lease, now); /* the renewal will notice the loss */
    else if (l->unseen)
        life_end_removing_key(l, now);
    else
        life_end_keeping_key(l, now);
}

void life_seen(struct life *l)
{
    if (guarded(GUARD_SEEN))
        l->unseen = false;
}
