/* SPDX-License-Identifier: MIT */
/* Carries out what a lock's state machine decides. */
#include "api/drive.h"

#include "api/loss.h"
#include "api/message.h"
#include "api/trace.h"
#include "api/waiting.h"
#include "api/warning.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/unanswered.h"
#include "client/voters.h"
#include "wire/value.h"

/* A server's part that needs memory and does not get it. */
static const struct outcome out_of_memory = {.kind = OUTCOME_FAULT,
    .fault = FAULT_SYSTEM,
    .left_ms = LEFT_UNKNOWN,
    .text = {"out of memory", sizeof("out of memory") - 1}};

static bool is_fencing(const struct nxl_lock *lock)
{
    return lock->life.vote.fencing;
}

static struct operation *operation_of(
    struct nxl_lock *lock, enum life_track track)
{
    return track == TRACK_CALL ? &lock->operation : &lock->renewing->operation;
}

uint64_t lock_seed(const struct nxl_lock *lock, uint64_t now)
{
    return now ^ (uint64_t)(uintptr_t)lock ^
           (uint64_t)(uintptr_t)lock->client->entropy << 16 ^
           lock->client->salt;
}

/* ----------------------------------------------------------------- actions */

static bool fresh_token(struct nxl_lock *lock)
{
    unsigned char random[16];
    if (!entropy_take(lock->client->entropy, random, sizeof(random)))
        return false;
    if (lock->token_foreign) {
        lock->token_len = token_layout(lock->token, lock->label);
        lock->token_foreign = false;
    }
    token_write(lock->token, random, lock->counter.len > 0);
    return true;
}

static void adopt_token(struct nxl_lock *lock)
{
    lock->token_len = strlen(lock->adopts);
    memcpy(lock->token, lock->adopts, lock->token_len + 1);
    for (unsigned i = 0; i < lock->client->server_count; i++)
        exchange_forget_form(&lock->operation.requests[i].exchange);
}

static void take_token(struct nxl_lock *lock)
{
    if (lock->life.call == CALL_ADOPT)
        adopt_token(lock);
    else if (!fresh_token(lock))
        life_no_token(&lock->life);
}

/* While counters are raised to the fencing token, keep what was noted of a
 * server's grant or failure: only a fault, or the answer to a request, replaces
 * it. */
static void note(struct nxl_lock *lock, enum life_track track, unsigned server,
    const struct outcome *outcome)
{
    struct operation *op = operation_of(lock, track);
    bool raising = track == TRACK_CALL && is_fencing(lock);
    if (!raising || outcome->kind == OUTCOME_FAULT ||
        op->notes[server].kind == NOTE_ASKED)
        operation_note(op, server, outcome);
}

/* What an inspection found at a server. False: no memory. */
static bool note_seen(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now)
{
    struct inspection *found =
        track == TRACK_CALL ? lock->seen : lock->renewing->found;
    bool ours = lease_held(&lock->life.lease, now) &&
                value_is_of(outcome->value, lock_token(lock));
    return inspection_note(found, server, outcome, ours);
}

/* Hands an outcome to the state machine, whether a server or the library
 * decided it. */
static void outcome_of(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now)
{
    struct operation *op = operation_of(lock, track);
    if (outcome->kind == OUTCOME_SEEN &&
        !note_seen(lock, track, server, outcome, now))
        outcome = &out_of_memory;
    note(lock, track, server, outcome);
    unanswered_outcome(op, server, outcome);
    life_outcome(&lock->life, track, server, outcome, now);
}

static struct slice token_for(
    const struct nxl_lock *lock, enum life_track track, enum verb_kind kind)
{
    static const struct slice none = {NULL, 0};
    if (kind == VERB_INSPECT &&
        (track == TRACK_RENEWAL || lock->life.call == CALL_INSPECT))
        return none;
    if (track == TRACK_CALL && lock->life.call == CALL_BREAK)
        return (struct slice){lock->target, lock->target_len};
    return lock_token(lock);
}

/* What may make the lock held needs a record for its cleanup first. */
static bool reserve(
    struct operation *op, unsigned server, struct outcome *outcome)
{
    if (operation_prepare(op, server))
        return true;
    *outcome = out_of_memory;
    return false;
}

/* Is the outcome known without a request? */
static bool is_known(struct nxl_lock *lock, enum life_track track,
    unsigned server, struct outcome *outcome, struct text *words, uint64_t now)
{
    struct operation *op = operation_of(lock, track);
    struct request *r = &op->requests[server];
    switch (op->verb.kind) {
    case VERB_ACQUIRE:
    case VERB_JOIN:
    case VERB_STAY:
        if (!voters_ask(lock->client, server, now, outcome, words))
            return true;
        return !reserve(op, server, outcome);
    case VERB_INSPECT:
        return track == TRACK_CALL && lock->life.call == CALL_ADOPT &&
               !reserve(op, server, outcome);
    case VERB_CAP_TTL: /* the time in a timestamp cannot be changed */
        *outcome =
            (struct outcome){.kind = OUTCOME_MINE, .left_ms = LEFT_UNKNOWN};
        return exchange_end_is_in_value(&r->exchange);
    default:
        return false;
    }
}

static void trace_round(struct nxl_lock *lock, uint64_t now)
{
    lock->operation.round = life_rounds(&lock->life);
    if (lock->life.call != CALL_ACQUIRE || is_fencing(lock) ||
        lock->attempts >= lock->operation.round)
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
    lock->renewing->found->chosen = NULL;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        exchange_inherit(
            &op->requests[i].exchange, &lock->operation.requests[i].exchange);
}

static void send_to(
    struct nxl_lock *lock, enum life_track track, unsigned server, uint64_t now)
{
    struct operation *op = operation_of(lock, track);
    struct outcome outcome;
    struct text words;
    if (track == TRACK_CALL)
        trace_round(lock, now);
    life_verb(&lock->life, track, &op->verb);
    op->verb.token = token_for(lock, track, op->verb.kind);
    if (is_known(lock, track, server, &outcome, &words, now)) {
        outcome_of(lock, track, server, &outcome, now);
        return;
    }
    if (op->verb.kind == VERB_RELEASE && lock->life.call == CALL_RELEASE)
        (void)operation_prepare(op, server);
    if (op->verb.window > 0)
        waiting_complete(lock, &op->verb);
    operation_send(op, server, now);
    if (verb_may_grant(op->verb.kind))
        server_connect_by(
            &lock->client->servers[server], life_connect_by(&lock->life));
}

/* Removes the key in the background. */
static void clean(struct nxl_lock *lock, unsigned server, uint64_t now)
{
    struct request *r = &lock->operation.requests[server];
    /* If there is no memory for that, it expires. */
    (void)operation_prepare(&lock->operation, server);
    server_clean_up(&lock->client->servers[server], r, lock_token(lock),
        lock->client->max_ttl_ms, lock->life.clean_until, now);
}

static bool can_adopt(const struct nxl_lock *lock, unsigned server)
{
    return server_can_adopt(&lock->client->servers[server],
        lock->operation.verb.key, lock_token(lock));
}

static void keep_adopted(struct nxl_lock *lock, unsigned server)
{
    server_adopt(&lock->client->servers[server],
        &lock->operation.requests[server], lock->operation.verb.key,
        lock_token(lock), lock->life.vote.ballots[server].until != 0);
}

static void carry_out(
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
        send_to(lock, action->track, server, now);
        break;
    case ACTION_SKIP:
        note(lock, action->track, server, &not_mine);
        break;
    case ACTION_UNDO:
    case ACTION_LEAVE:
        unanswered_leave(op, server);
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
    case ACTION_KEEP:
        keep_adopted(lock, server);
        break;
    case ACTION_LINE:
        waiting_line_up(lock, now);
        break;
    }
}

/* ------------------------------------------------------------------ results */

static void compose(struct nxl_lock *lock, int result)
{
    const struct life *life = &lock->life;
    bool acquires = life->call == CALL_ACQUIRE;
    struct text message;
    struct report report = {
        .operation = &lock->operation,
        .kind = lock->kind,
        .result = result,
        .fault = life->fault,
        .left_ms = acquires ? life->vote.acquire.left_ms : LEFT_UNKNOWN,
        .waited =
            !acquires || is_fencing(lock) || life->vote.acquire.silent > 0,
    };
    message_compose(&report, &message);
    operation_tell(&lock->operation, &message);
}

static void call_is_over(struct nxl_lock *lock, uint64_t now)
{
    int result = result_of_life(&lock->life);
    unsigned servers = lock->client->server_count;
    if (lock->kind == NXL_OP_INSPECT && result == NXL_OK)
        inspection_choose(lock->seen, lock->operation.notes, servers);
    if (result == NXL_OK &&
        (lock->kind == NXL_OP_ACQUIRE || lock->kind == NXL_OP_ADOPT)) {
        atomic_store(&lock->fence, life_fence(&lock->life));
        loss_forget(lock);
    }
    if (result == NXL_OK && lock->kind == NXL_OP_ACQUIRE)
        warning_note_grant(lock);
    if (result != NXL_OK || servers > 1)
        compose(lock, result);
    trace_end(lock, result, now);
    timer_stop(&lock->client->timers, &lock->operation.timer);
    call_over(lock->client, &lock->call, result);
}

static void take_events(struct nxl_lock *lock, uint64_t now)
{
    enum life_event event;
    while ((event = life_event(&lock->life)) != LIFE_NOTHING) {
        if (event == LIFE_CALL_OVER)
            call_is_over(lock, now);
        else
            loss_event(lock, event, now);
    }
}

void lock_begin(struct nxl_lock *lock, enum nxl_operation kind,
    const char *request, uint64_t now)
{
    lock->kind = kind;
    lock->call.running = true;
    lock->started_at = now;
    lock->attempts = 0;
    operation_begin(&lock->operation, request);
    lock->operation.kept = kind == NXL_OP_BREAK ? NULL : &lock->kept;
    /* Also needed for a request that is undone before it was sent. */
    struct verb *verb = &lock->operation.verb;
    life_verb(&lock->life, TRACK_CALL, verb);
    verb->token = token_for(lock, TRACK_CALL, verb->kind);
}

void lock_run(struct nxl_lock *lock, uint64_t now)
{
    struct nxl_client *client = lock->client;
    struct life *life = &lock->life;
    struct action action;
    client_update_peers(client);
    while (life_next(life, &action, now))
        carry_out(lock, &action, now);
    if (lock->waiting)
        waiting_settle(lock, now);
    if (lock->renewing)
        loss_ended(lock, now);
    take_events(lock, now);
    client->stats.hold_ns += life->lease.held_ns;
    life->lease.held_ns = 0;
    if (lock->call.running)
        timer_set(&client->timers, &lock->operation.timer,
            life_wake(life, TRACK_CALL));
    else if (lease_state(&life->lease, now) == LEASE_NONE)
        operation_unprepare(&lock->operation);
    if (lock->renewing)
        loss_settle(lock, now);
}

/* ---------------------------------------------------- the table's functions */

static void take_weighed(struct nxl_lock *lock, enum life_track track,
    unsigned server, const struct outcome *outcome, uint64_t now)
{
    struct outcome other;
    struct text words;
    outcome_of(lock, track, server,
        voters_weigh(lock->client, server, operation_of(lock, track)->verb.kind,
            outcome, now, &other, &words),
        now);
    lock_run(lock, now);
}

static void call_outcome(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct nxl_lock *lock = list_entry(op, struct nxl_lock, operation);
    if (!lock->call.running)
        return;
    if (lock->operation.verb.test)
        waiting_answered(lock, outcome, now);
    take_weighed(lock, TRACK_CALL, server, outcome, now);
}

static void call_tick(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = list_entry(op, struct nxl_lock, operation);
    life_tick(&lock->life, now);
    lock_run(lock, now);
}

const struct operation_type lock_call_type = {call_outcome, call_tick};

static void renewal_reply(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct renewing *renewing = list_entry(op, struct renewing, operation);
    if (renewal_busy(&renewing->renewal))
        take_weighed(renewing->lock, TRACK_RENEWAL, server, outcome, now);
}

static void renewal_due(struct operation *op, uint64_t now)
{
    struct renewing *renewing = list_entry(op, struct renewing, operation);
    life_tick(&renewing->lock->life, now);
    lock_run(renewing->lock, now);
}

const struct operation_type lock_renewal_type = {renewal_reply, renewal_due};

/* --------------------------------------------------------------------- ends */

void lock_end(struct nxl_lock *lock, uint64_t now)
{
    life_discard(&lock->life);
    lock_run(lock, now);
    life_end_lease(&lock->life, now);
    renewal_stop(lock->life.renewal);
    lock_run(lock, now);
}

bool lock_grant_expired(const struct nxl_lock *lock)
{
    return life_grant_expired(&lock->life, clock_now());
}

void lock_drop_expired(struct nxl_lock *lock, uint64_t now)
{
    life_drop_expired(&lock->life, now);
    compose(lock, NXL_LOST);
    lock->call.result = NXL_LOST;
    lock_run(lock, now);
}

void lock_interrupt_all(struct nxl_client *client, uint64_t now)
{
    bool any = false;
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        if (!lock->call.running || lock->kind != NXL_OP_ACQUIRE)
            continue;
        life_cancel(&lock->life);
        lock_run(lock, now);
        /* A call that was granted before the cancel does not use up the
         * interrupt. */
        any |= !lock->call.running && lock->call.result == NXL_CANCELLED;
    }
    if (any)
        atomic_store(&client->interrupted, false);
}
