/* SPDX-License-Identifier: MIT */
/* Carries out the actions of a lock's state machine. */
#include "lock/actions.h"

#include "base/deadline.h"
#include "client/unanswered.h"
#include "client/voters.h"
#include "lock/once.h"
#include "lock/trace.h"
#include "lock/waiting.h"
#include "lock/warning.h"
#include "net/spare.h"
#include "wire/value.h"

/* What counts as a server's answer if there was no memory to ask it. */
static const struct outcome out_of_memory = {.kind = OUTCOME_FAULT,
    .fault = FAULT_SYSTEM,
    .left_ms = LEFT_UNKNOWN,
    .text = {"out of memory", sizeof("out of memory") - 1}};

/* ------------------------------------------------------------------ tokens */

bool action_draw_token(struct nxl_lock *lock)
{
    unsigned char random[16];
    if (!entropy_take(lock->client->entropy, random, sizeof(random)))
        return false;
    lock->token = lock->own_token;
    lock->token_len = lock->own_len;
    token_write(lock->token, random,
        lock->name.counter.len > 0 || lock->life.call == CALL_BEGIN);
    return true;
}

static void adopt_token(struct nxl_lock *lock)
{
    lock->token = lock->adopted_token;
    lock->token_len = (uint8_t)strlen(lock->adopts);
    memmove(lock->token, lock->adopts, lock->token_len + 1U); /* maybe itself */
    for (unsigned i = 0; i < lock->client->server_count; i++)
        exchange_forget_form(&lock->operation.requests[i].exchange);
}

/* All members of a group have the token of the front. Each may use it once: if
 * one needs another token, so do all. */
static bool common_token(struct nxl_lock *lock)
{
    const struct nxl_lock *front = lock->group->front;
    lock->token_wanted = lock->token_is_used;
    if (lock->token_is_used)
        return false;
    lock->token_is_used = true;
    lock->token = lock->own_token;
    lock->token_len = lock->own_len;
    memcpy(lock->token, front->own_token, front->own_len);
    return true;
}

static bool fresh_token(struct nxl_lock *lock)
{
    return lock_is_member(lock) ? common_token(lock) : action_draw_token(lock);
}

static void take_token(struct nxl_lock *lock)
{
    if (lock->life.call == CALL_ADOPT)
        adopt_token(lock);
    else if (!fresh_token(lock))
        life_no_token(&lock->life);
}

/* While another condition of a grant is worked off, keep what was noted of a
 * server's grant or failure: only a fault, or the answer to a request, replaces
 * it. */
static void note(struct nxl_lock *lock, enum life_track track, unsigned server,
    const struct outcome *outcome)
{
    struct operation *op = operation_of(lock, track);
    bool past = track == TRACK_CALL && lock->life.vote.raising_fence;
    if (!past || outcome->kind == OUTCOME_FAULT ||
        op->notes[server].kind == NOTE_ASKED)
        operation_note(op, server, outcome);
}

/* What an inspection found at a server. False: no memory. */
static bool note_seen(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now)
{
    struct inspection *found =
        track == TRACK_CALL ? lock->inspected : lock->renewing->inspected;
    bool ours = lease_held(&lock->life.lease, now) &&
                value_is_of(outcome->value, lock_token(lock));
    return inspection_note(found, server, outcome, ours);
}

void action_outcome(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now)
{
    struct operation *op = operation_of(lock, track);
    struct outcome other;
    struct text words;
    struct node *node = node_of(op->requests[server].server);
    enum verb_kind verb = op->verb.kind;
    uint64_t lasts =
        verb_traits[verb].extends_lease ? life_lasts_until(&lock->life) : 0;
    outcome = voters_weigh(node, verb, outcome, lasts, now, &other, &words);
    if (outcome->kind == OUTCOME_SEEN &&
        !note_seen(lock, track, server, outcome, now))
        outcome = &out_of_memory;
    if (outcome->kind == OUTCOME_BUSY &&
        voters_note_longer_lease(node, outcome->left_ms, now))
        warning_note_longer(lock, server, outcome->left_ms);
    note(lock, track, server, outcome);
    unanswered_outcome(op, server, outcome);
    life_outcome(&lock->life, track, server, outcome, now);
}

/* The token of a request of that kind. */
static struct slice token_of(
    const struct nxl_lock *lock, enum life_track track, enum verb_kind kind)
{
    static const struct slice none = {NULL, 0};
    if (track == TRACK_RENEWAL)
        return verb_traits[kind].changes_no_lock ? none : lock_token(lock);
    switch (call_traits[lock->life.call].token) {
    case TOKEN_OF_LOCK:
        break;
    case TOKEN_OF_NOBODY:
        return none;
    case TOKEN_OF_TARGET:
        return (struct slice){lock->target, lock->target_len};
    case TOKEN_OF_WORK:
        return once_token(lock);
    }
    return lock_token(lock);
}

/* Makes the verb of a request, of what the state machine says and what only
 * this lock knows. */
static void make_verb(struct nxl_lock *lock, const struct action *action)
{
    struct verb *verb = &operation_of(lock, action->track)->verb;
    *verb = action->verb;
    verb->key = lock->name.key;
    verb->counter = lock->name.counter;
    verb->token = token_of(lock, action->track, verb->kind);
    if (lock->asks_early && verb_traits[verb->kind].may_grant)
        verb->after = &lock->group->members[lock->member - 1]->name.key;
    if (!verb->token.data && action->track == TRACK_CALL) /* who holds it? */
        verb->values = lock->inspected->listed;
    if (verb_traits[verb->kind].waits_in_line)
        waiting_complete(lock, verb);
    if (verb_traits[verb->kind].uses_record)
        once_complete(lock, verb);
}

/* Does this request need a spare cleaner? Without one the lock must not be
 * held, but a release leaves the key to its TTL, at worst. */
static enum spare_need spare_need(
    const struct nxl_lock *lock, enum life_track track, enum verb_kind kind)
{
    const struct verb_traits *verb = &verb_traits[kind];
    const struct call_traits *call = &call_traits[lock->life.call];
    if (verb->may_grant || (track == TRACK_CALL && call->adopts))
        return SPARE_NEEDED;
    return verb->residue != RESIDUE_NONE && call->cleans_up ? SPARE_WANTED
                                                            : SPARE_UNNEEDED;
}

/* Is the outcome known without a request? */
static bool is_known(struct nxl_lock *lock, enum life_track track,
    unsigned server, struct outcome *outcome, struct text *words, uint64_t now)
{
    struct operation *op = operation_of(lock, track);
    struct request *r = &op->requests[server];
    const struct verb_traits *verb = &verb_traits[op->verb.kind];
    if (!voters_may_send(
            node_of(r->server), op->verb.kind, now, outcome, words))
        return true;
    if (verb->shortens_ttl && exchange_end_is_in_value(&r->exchange)) {
        *outcome =
            (struct outcome){.kind = OUTCOME_MINE, .left_ms = LEFT_UNKNOWN};
        return true;
    }
    return false;
}

/* A call goes on, perhaps with another round of an acquire. */
static void trace_round(struct nxl_lock *lock, uint64_t now)
{
    const struct vote *vote = &lock->life.vote;
    lock->operation.round = lock_acquires(lock) ? vote->acquire.rounds : 0;
    if (vote->raising_fence || lock->attempts >= lock->operation.round)
        return;
    lock->attempts++;
    trace_attempt(lock, now);
}

/* A new round of a renewal, or of the check after a loss, begins. */
static void begin_renewal(struct nxl_lock *lock)
{
    struct operation *op = &lock->renewing->operation;
    if (op->round == lock->life.renewal->rounds)
        return;
    operation_begin(op, "extend");
    op->round = lock->life.renewal->rounds;
    lock->renewing->inspected->chosen = NULL;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        exchange_inherit(
            &op->requests[i].exchange, &lock->operation.requests[i].exchange);
}

static void send_to(
    struct nxl_lock *lock, const struct action *action, uint64_t now)
{
    enum life_track track = action->track;
    unsigned server = action->server;
    struct operation *op = operation_of(lock, track);
    struct outcome outcome;
    struct text words;
    if (track == TRACK_CALL)
        trace_round(lock, now);
    make_verb(lock, action);
    if (is_known(lock, track, server, &outcome, &words, now))
        action_outcome(lock, track, server, &outcome, now);
    else if (!operation_send(
                 op, server, spare_need(lock, track, op->verb.kind), now))
        action_outcome(lock, track, server, &out_of_memory, now);
}

/* Removes the key in the background. */
static void clean(struct nxl_lock *lock, unsigned server, uint64_t now)
{
    struct request *r = &lock->operation.requests[server];
    /* If there is no memory for that, it expires. */
    (void)spare_reserve(r, lock->name.key);
    if (lock->life.clean_begun)
        server_undo_begin(r, lock_token(lock), lock->client->max_ttl_ms, now);
    else
        server_clean_up(r, lock_token(lock), lock->client->max_ttl_ms,
            lock->life.clean_until, now);
}

static bool can_adopt(const struct nxl_lock *lock, unsigned server)
{
    return server_can_adopt(lock->operation.requests[server].server,
        lock->name.key, lock_token(lock));
}

static void keep_adopted(struct nxl_lock *lock, unsigned server)
{
    server_adopt(&lock->operation.requests[server], lock->name.key,
        lock_token(lock), lock->life.vote.ballots[server].until != 0);
}

void action_carry_out(
    struct nxl_lock *lock, const struct action *action, uint64_t now)
{
    static const struct outcome not_mine = {
        .kind = OUTCOME_NOT_MINE, .left_ms = LEFT_UNKNOWN};
    struct operation *op = operation_of(lock, action->track);
    unsigned server = action->server;
    bool undo = action->kind == ACTION_UNDO;
    if (action->track == TRACK_RENEWAL)
        begin_renewal(lock);
    switch (action->kind) {
    case ACTION_TOKEN:
        take_token(lock);
        break;
    case ACTION_SEND:
        send_to(lock, action, now);
        break;
    case ACTION_SKIP:
        note(lock, action->track, server, &not_mine);
        break;
    case ACTION_UNDO:
        /* The requests of all servers point to op->verb, so it is not made anew
         * while one of this call may be under way; this server's was sent by an
         * earlier call. */
        if (op->notes[server].kind == NOTE_NONE)
            make_verb(lock, action);
        /* fall through */
    case ACTION_ABANDON:
        unanswered_abandon(op, server);
        if (operation_abandon(op, server, undo, now))
            life_withdrawn(&lock->life, action);
        break;
    case ACTION_CLEAN:
        clean(lock, server, now);
        break;
    case ACTION_CLAIM:
        if (!can_adopt(lock, server))
            life_not_claimed(&lock->life);
        break;
    case ACTION_ADOPT:
        keep_adopted(lock, server);
        break;
    case ACTION_LINE:
        waiting_line_up(lock, now);
        break;
    }
}
