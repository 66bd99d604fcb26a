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

void life_set_terms(struct life *l, const struct life_terms *terms)
{
    l->terms = *terms;
    l->usable_ns = ms_to_ns(terms->ttl_ms) -
                   lease_drift_ns(terms->ttl_ms, terms->drift_ppm);
}

void life_init(struct life *l, const struct life_terms *terms,
    struct ballot *ballots, struct renewal *renewal)
{
    life_set_terms(l, terms);
    l->vote.ballots = ballots;
    l->renewal = renewal;
    l->lease.ends = NEVER;
    l->wake = NEVER;
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

/* None is lost for want of room: between two times that the driver takes all of
 * them there are three at most, the end of a call, the end of a renewal, and a
 * loss. */
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

void life_end_call(struct life *l, enum life_result result, enum fault fault)
{
    l->fault = fault;
    finish(l, result);
}

/* The adoption has a quorum. Whatever would still delete the key of the token
 * is cancelled, but only once it is certain that this is possible at every
 * server: otherwise a token without a holder would stay until its TTL. */
static bool claim_if_won(struct life *l, enum verdict verdict, uint64_t now)
{
    if (!call_traits[l->call].adopts || verdict != VERDICT_YES ||
        life_adoption_failed(l, now) || l->adopt_asked)
        return false;
    if (!l->claim_asked) { /* first: is it possible at every server? */
        l->claim_asked = true;
        l->to_claim = all_servers(l);
    } else { /* then: cancel the cleanups */
        l->adopt_asked = true;
        l->to_adopt = all_servers(l);
    }
    return true;
}

/* The lock is taken: once after each round, the driver may choose to wait in
 * line. */
static bool offer_line(struct life *l)
{
    if (!call_traits[l->call].acquires || l->vote.line || l->cancelled ||
        !l->vote.acquire.may_line_up)
        return false;
    l->vote.acquire.may_line_up = false;
    l->line_due = true;
    return true;
}

/* All effects of the vote have been taken. True: there may be more to do. */
static bool step_call(struct life *l, const struct effect *status, uint64_t now)
{
    if (!l->running || l->stragglers)
        return false;
    if (l->abandoned) {
        finish(l, LIFE_UNKNOWN);
        return true;
    }
    if (status->verdict == VERDICT_OPEN)
        return offer_line(l);
    bool final = !l->vote.wanted;
    switch (final ? VOTE_OVER : vote_step(&l->vote, status->verdict, now)) {
    case VOTE_GOES_ON:
        if (l->cancelled) /* while the call waited for stragglers */
            vote_cancel(&l->vote);
        return true;
    case VOTE_UNDO:
        /* In this order: life_end_removing_key() copies l->may_have_token
         * before life_withdrawn() of an abandoned RAISE can take a server out
         * of it.
         */
        l->to_abandon |= all_servers(l);
        life_end_removing_key(l, now);
        vote_again(&l->vote, now);
        return true;
    case VOTE_OVER:
        break;
    }
    if (!claim_if_won(l, status->verdict, now))
        finish(l, life_settle(l, status, now));
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
    return call_traits[l->call].acquires && !l->vote.raising_fence;
}

/* May this server be skipped? Yes, if it cannot have the token. */
static bool skips(const struct life *l, unsigned server)
{
    return (call_traits[l->call].skips_without_token ||
               l->vote.raising_fence) &&
           !(l->may_have_token & bit(server));
}

/* Does the decided call still wait for this server, which has not answered?
 * After an acquire, that is one that only began to connect during it. */
static bool waits_for_straggler(const struct life *l, unsigned server)
{
    const struct acquire *a = &l->vote.acquire;
    switch (call_traits[l->call].stragglers) {
    case STRAGGLERS_NONE:
        break;
    case STRAGGLERS_ALL:
        return l->vote.round.decision == VERDICT_YES ||
               l->vote.round.decision == VERDICT_NO;
    case STRAGGLERS_CONNECTING:
        return !l->vote.raising_fence && a->decision == VERDICT_YES &&
               l->terms.servers > 1 &&
               l->terms.peers[server].link == PEER_CONNECTING &&
               l->terms.peers[server].since >= a->round_started;
    }
    return false;
}

static uint64_t stragglers_end(const struct life *l, uint64_t now)
{
    const struct acquire *a = &l->vote.acquire;
    uint64_t until = deadline_after(now, STRAGGLERS_MAX);
    if (!call_traits[l->call].acquires)
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
    l->may_have_token |= bit(server);
    l->requested |= bit(server);
    l->answered &= ~bit(server);
}

/* What a request of the call says now. */
static void set_call_verb(const struct life *l, struct verb *verb)
{
    const struct acquire *a = &l->vote.acquire;
    const struct line *line = l->vote.line;
    *verb = (struct verb){
        .kind = l->min_hold ? VERB_CAP_TTL : call_traits[l->call].verb,
        .ttl_ms = l->request_ttl_ms,
        .not_after = l->not_after,
        .of_other_holder = l->not_own,
    };
    if (l->vote.condition)
        vote_complete(&l->vote, verb);
    if (life_in_line(l)) {
        verb->kind = line_joins(line) ? VERB_JOIN : VERB_STAY;
        verb->earlier_token_possible = line->late_grant_possible;
        verb->ttl_ms = line_lease_ms(&line->terms);
        verb->window = line_window(&line->terms);
        verb->connect_by = a->connect_by;
    } else if (verb_traits[verb->kind].may_grant) {
        verb->earlier_token_possible = a->earlier_token_possible;
        verb->want_left = verb_traits[verb->kind].tells_left && a->want_left;
        if (a->asks_kind) {
            verb->asks_kind = verb->want_left;
            verb->hold_back_ms = verb->asks_kind ? a->hold_back_ms : 0;
        }
        verb->may_wait = a->terms.wait_until > a->round_started;
        verb->connect_by = a->connect_by;
    } else if (verb_traits[verb->kind].hands_over) {
        verb->gap_ms = l->gap_ms;
        verb->has_waiters_behind = l->handed_over;
    }
}

/* False: there is no action for the driver. */
static bool call_action(struct life *l, const struct effect *effect,
    struct action *action, uint64_t now)
{
    action->track = TRACK_CALL;
    action->server = effect->server;
    switch (effect->kind) {
    case EFFECT_TOKEN:
        action->kind = ACTION_TOKEN;
        l->lease.promised = 0;
        l->may_have_token = 0; /* what the last call left is being cleaned up */
        break;
    case EFFECT_SEND:
        action->kind = ACTION_SEND;
        if (skips(l, effect->server)) {
            action->kind = ACTION_SKIP;
            vote_outcome(&l->vote, effect->server, &not_mine, now);
        }
        note_send(l, effect->server);
        set_call_verb(l, &action->verb);
        break;
    case EFFECT_UNDO:
        action->kind =
            call_traits[l->call].cleans_up ? ACTION_UNDO : ACTION_ABANDON;
        set_call_verb(l, &action->verb);
        break;
    case EFFECT_ABANDON:
        action->kind = ACTION_ABANDON;
        if (waits_for_straggler(l, effect->server)) {
            l->stragglers_until =
                l->stragglers ? l->stragglers_until : stragglers_end(l, now);
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
    bool extends = l->renewal->state == RENEWAL_EXTENDING;
    action->track = TRACK_RENEWAL;
    action->server = effect->server;
    action->kind = ACTION_ABANDON;
    if (effect->kind != EFFECT_SEND)
        return;
    action->kind = ACTION_SEND;
    action->verb = (struct verb){.kind = extends ? VERB_EXTEND : VERB_INSPECT,
        .ttl_ms = l->renewal->round.terms.ttl_ms,
        .not_after = TIME_LIMIT_NONE};
    if (extends && !(l->may_have_token & bit(effect->server))) {
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
    action->track = TRACK_CALL;
    action->server = 0;
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
        l->lease.promised = 0;
    }
    if (action->kind == ACTION_UNDO)
        set_call_verb(l, &action->verb);
    return true;
}

static uint64_t call_wake(const struct life *l, const struct effect *status)
{
    if (!l->running)
        return NEVER;
    return l->stragglers ? l->stragglers_until : status->wake;
}

bool life_next(struct life *l, struct action *action, uint64_t now)
{
    struct effect effect;
    effect.wake = NEVER;
    do {
        if (renewal_next(l->renewal, &effect)) {
            renewal_action(l, &effect, action, now);
            return true;
        }
        if (decided_action(l, action))
            return true;
        while (l->running && !l->abandoned && vote_next(&l->vote, &effect)) {
            if (call_action(l, &effect, action, now))
                return true;
        }
    } while (step_call(l, &effect, now) || step_renewal(l, now));
    l->wake = call_wake(l, &effect);
    return false;
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
                           !vote_token_is_held(&l->vote));
        if (refused && !l->vote.line) /* else the token is in line */
            l->may_have_token &= ~bit(server);
    }
    l->found = outcome->found;
    vote_outcome(&l->vote, server, outcome, now);
}

uint64_t life_lasts_until(const struct life *l)
{
    if (l->lease.promised)
        return l->lease.promised;
    return vote_token_is_held(&l->vote) ? l->vote.acquire.deadline : 0;
}

void life_withdrawn(struct life *l, const struct action *action)
{
    if (action->track == TRACK_RENEWAL || l->abandoned)
        return;
    if (action->kind == ACTION_UNDO || call_traits[l->call].unsent_is_certain)
        vote_withdrawn(&l->vote, action->server);
    else if (asks_for_lock(l) && !l->vote.line)
        l->may_have_token &= ~bit(action->server);
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
