/* SPDX-License-Identifier: MIT */
/* Carries out what a lock's state machine decides. */
#include "lock/drive.h"

#include "base/clock.h"
#include "lock/actions.h"
#include "lock/loss.h"
#include "lock/errmsg.h"
#include "lock/once.h"
#include "lock/stats.h"
#include "lock/trace.h"
#include "lock/waiting.h"
#include "lock/warning.h"
#include "net/spare.h"

uint64_t lock_seed(const struct nxl_lock *lock, uint64_t now)
{
    return now ^ (uint64_t)(uintptr_t)lock ^
           (uint64_t)(uintptr_t)lock->client->entropy << 16 ^
           lock->client->salt;
}

/* ------------------------------------------------------------------ results */

/* Above so many handles a message does not look who of them holds the lock: it
 * would keep all other calls waiting. */
#define LOOKED_AT_MOST 1000

static struct held_here look_here(const struct nxl_lock *lock)
{
    if (lock->client->refs > LOOKED_AT_MOST)
        return (struct held_here){.handles = 0};
    return held_by_others_here(lock, clock_now());
}

static void compose(struct nxl_lock *lock, int result)
{
    const struct life *life = &lock->life;
    bool acquires = lock_acquires(lock);
    struct text message;
    struct report report = {
        .operation = &lock->operation,
        .kind = lock->kind,
        .result = result,
        .fault = life->fault,
        .left_ms = acquires ? life->vote.acquire.left_ms : LEFT_UNKNOWN,
        .waited = !acquires || life->vote.raising_fence ||
                  life->vote.acquire.unanswered > 0,
    };
    if (result == NXL_BUSY)
        report.here = look_here(lock);
    if (!once_compose(lock, result, &message))
        errmsg_compose(&report, &message);
    operation_set_errmsg(&lock->operation, &message);
}

static void call_is_over(struct nxl_lock *lock, uint64_t now)
{
    int result = result_of_life(&lock->life);
    unsigned servers = lock->client->server_count;
    if (lock->kind == NXL_OP_INSPECT && result == NXL_OK)
        inspection_choose(lock->inspected, lock->operation.notes, servers);
    once_over(lock, result);
    if (result == NXL_OK &&
        (lock_acquires(lock) || lock->kind == NXL_OP_ADOPT)) {
        atomic_store(&lock->fence, lock->life.fence);
        loss_forget(lock);
    }
    if (result == NXL_OK && lock_acquires(lock))
        warning_note_grant(lock);
    /* The message of a front is made of that of a member. */
    if ((result != NXL_OK || servers > 1) && !lock_is_front(lock))
        compose(lock, result);
    timer_stop(&lock->client->timers, &lock->operation.timer);
    if (lock_is_member(lock)) {
        lock->call.running = false;
        lock->group->type->member_over(lock, now);
        return;
    }
    trace_end(lock, result, now);
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
    lock->operation.cache = kind == NXL_OP_BREAK ? NULL : &lock->name.cache;
    lock_run(lock, now);
}

/* No cleanup can become necessary before the next acquire. */
static void give_spares_back(struct nxl_lock *lock)
{
    for (unsigned i = 0; i < lock->client->server_count; i++)
        spare_give_back(&lock->operation.requests[i]);
}

void lock_run(struct nxl_lock *lock, uint64_t now)
{
    struct nxl_client *client = lock->client;
    struct life *life = &lock->life;
    struct action action;
    client_update_peers(client);
    while (life_next(life, &action, now))
        action_carry_out(lock, &action, now);
    if (lock->name.waiting)
        waiting_update(lock, now);
    if (lock->renewing)
        loss_ended(lock);
    take_events(lock, now);
    if (life->lease.held_ns && !lock_is_member(lock))
        stats_held(client, life->lease.held_ns);
    life->lease.held_ns = 0;
    if (lock->call.running)
        timer_set(&client->timers, &lock->operation.timer, life->wake);
    else if (life->lease.stored == LEASE_NONE)
        give_spares_back(lock);
    if (lock->renewing)
        loss_update(lock, now);
    if (lock->group)
        lock->group->type->ran(lock, now);
}

/* ---------------------------------------------------- the table's functions */

static void call_outcome(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct nxl_lock *lock = list_entry(op, struct nxl_lock, operation);
    if (!lock->call.running)
        return;
    if (lock->operation.verb.test_listener)
        waiting_answered(lock, outcome, now);
    action_outcome(lock, TRACK_CALL, server, outcome, now);
    lock_run(lock, now);
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
    if (!renewal_busy(&renewing->renewal))
        return;
    action_outcome(renewing->lock, TRACK_RENEWAL, server, outcome, now);
    lock_run(renewing->lock, now);
}

static void renewal_tick_due(struct operation *op, uint64_t now)
{
    struct renewing *renewing = list_entry(op, struct renewing, operation);
    struct nxl_lock *lock = renewing->lock;
    if (lock->group)
        lock->group->type->renewal_due(lock, now);
    life_tick(&lock->life, now);
    lock_run(lock, now);
}

const struct operation_type lock_renewal_type = {
    renewal_reply, renewal_tick_due};

/* --------------------------------------------------------------------- ends */

void lock_end(struct nxl_lock *lock, uint64_t now)
{
    if (lock_is_front(lock))
        lock->group->type->end(lock, now);
    life_discard(&lock->life);
    lock_run(lock, now);
    life_end_lease(&lock->life, now);
    renewal_stop(lock->life.renewal);
    lock_run(lock, now);
}

void lock_drop_expired(struct nxl_lock *lock, uint64_t now)
{
    life_drop_expired(&lock->life, now);
    if (lock_is_front(lock))
        lock->group->type->give_up(lock, now);
    compose(lock, NXL_LOST);
    lock->call.result = NXL_LOST;
    lock_run(lock, now);
}

void lock_cancel(struct nxl_lock *lock, uint64_t now)
{
    if (lock_is_front(lock))
        lock->group->type->cancel(lock, now);
    else
        life_cancel(&lock->life);
    lock_run(lock, now);
}

void lock_interrupt_all(struct nxl_client *client, uint64_t now)
{
    bool any = false;
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        if (!lock->call.running || !lock_acquires(lock) || lock_is_member(lock))
            continue;
        lock_cancel(lock, now);
        /* A call that was granted before the cancel does not use up the
         * interrupt. */
        any |= !lock->call.running && lock->call.result == NXL_CANCELLED;
    }
    if (any)
        atomic_store(&client->interrupted, false);
}

void lock_renew_all(struct nxl_client *client, uint64_t now)
{
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        if (!lock->renewing)
            continue;
        renewal_hurry(lock->life.renewal, now);
        loss_update(lock, now);
    }
}
