/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a lock's deadline is set only from a machine's YES, is cleared before
 * a release is sent, and never comes back once its time was over here.
 */
#include "api/lease.h"

#include "api/hold.h"
#include "api/message.h"
#include "api/trace.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/guard.h"
#include "wire/timestamp.h"

void lease_set(struct nxl_lock *lock, uint64_t deadline)
{
    lock->holding = true;
    atomic_store_explicit(&lock->deadline, earlier(deadline, lock->ends),
        memory_order_release);
}

void lease_forget(struct nxl_lock *lock, uint64_t now)
{
    trace_hold_over(lock, now);
    atomic_store_explicit(&lock->deadline, 0, memory_order_release);
}

void lease_lapse(struct nxl_lock *lock, uint64_t now)
{
    uint64_t deadline = atomic_load(&lock->deadline);
    if (deadline && now >= deadline && !lock->unsure && !lock->hold)
        lock->ran_out = true;
    lease_forget(lock, now);
}

void lease_end(struct nxl_lock *lock, uint64_t now)
{
    lease_forget(lock, now);
    lock->holding = false;
}

/* Nothing is held, and nothing renewed. */
static void part(struct nxl_lock *lock, uint64_t now)
{
    hold_end(lock, now);
    lease_end(lock, now);
}

/* Held from now on, and for the minimum. */
static void granted(struct nxl_lock *lock, uint64_t deadline,
    uint32_t min_hold_ms, uint64_t now)
{
    lock->granted_at = now;
    lock->stands_until = deadline_after_ms(now, min_hold_ms);
    lock->ends = deadline_after(now, lock->max_hold_ns);
    lock->unsure = lock->ran_out = false;
    lease_set(lock, deadline);
    hold_begin(lock, now);
}

static void settle_extend(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    uint64_t old = atomic_load(&lock->deadline);
    /* A lease that lapsed here is lost, whatever the server still says: a
     * process that was stopped must not revive itself. */
    if (op->result == NXL_LOST || (now >= old && guarded(GUARD_LAPSED))) {
        bool refuted = op->result == NXL_LOST;
        op->result = NXL_LOST;
        if (refuted)
            hold_refuted(lock, now);
        lock->unsure |= !refuted;
        lease_forget(lock, now);
    } else if (op->result == NXL_OK) {
        lease_set(lock, later(old, op->machine.round.deadline));
        hold_prolonged(lock, now);
    } else {
        lock->unsure = true;
    }
}

static void settle_adopt(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    bool stays = true;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        stays &= server_forgive(
            &lock->client->servers[i], lock->verb.key, lock->verb.token);
    atomic_store(&lock->fence, 0);
    if (stays && op->machine.round.deadline > now)
        granted(lock, op->machine.round.deadline, 0, now);
    else
        op->result = NXL_LOST;
}

void lease_settle(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    if (op->kind == NXL_OP_EXTEND) {
        settle_extend(op, now);
    } else if (op->kind == NXL_OP_RELEASE) {
        /* It stood at the server perhaps, but nobody could rely on it here. */
        if (op->lapsed && guarded(GUARD_LAPSED))
            op->result = NXL_LOST;
    } else if (op->result == NXL_OK && op->kind == NXL_OP_ACQUIRE) {
        granted(lock, op->machine.acquire.deadline, lock->min_hold_ms, now);
        atomic_store(&lock->fence, op->fencing ? op->fence.number : 0);
        client_note_grant(lock);
    } else if (op->result == NXL_OK && op->kind == NXL_OP_ADOPT) {
        settle_adopt(op, now);
    } else if (op->result == NXL_OK && op->kind == NXL_OP_BREAK &&
               value_is_of(lock->verb.token, lock_token(lock))) {
        lease_forget(lock, now); /* it broke its own */
        hold_end(lock, now);
    }
}

uint32_t lease_rest_ms(const struct nxl_lock *lock, uint64_t now)
{
    uint64_t left = deadline_left(lock->stands_until, now);
    return (uint32_t)((left + NS_PER_MS - 1) / NS_PER_MS);
}

/* --------------------------------------------------------------- afterwards */

bool operation_stale(struct operation *op)
{
    if (op->result != NXL_OK || (op->kind != NXL_OP_ACQUIRE &&
                                    op->kind != NXL_OP_ADOPT &&
                                    op->kind != NXL_OP_EXTEND))
        return false;
    return clock_now() >= atomic_load(&lock_of(op)->deadline) &&
           guarded(GUARD_HAND_OVER);
}

void operation_drop_stale(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    op->result = NXL_LOST;
    message_result(lock, FAULT_NONE);
    if (op->kind == NXL_OP_EXTEND)
        lease_forget(lock, now); /* its hold finds that out by itself */
    else if (op->kind == NXL_OP_ADOPT)
        part(lock, now); /* the token's owner may be alive */
    else
        lock_let_go(lock, now);
}

void lock_let_go(struct nxl_lock *lock, uint64_t now)
{
    struct slice token = lock_token(lock);
    part(lock, now);
    for (unsigned i = 0; i < lock->client->server_count; i++) {
        struct request *r = &lock->requests[i];
        if (!(lock->reached & (1U << i)))
            continue;
        if (!request_prepare(r, lock->verb.key))
            continue; /* its ttl frees it */
        struct debt *debt = r->spare;
        r->spare = NULL;
        exchange_inherit(&debt->exchange, &r->exchange);
        server_owe(&lock->client->servers[i], debt, token,
            lock->client->max_ttl_ms, now);
    }
}

void lock_part(struct nxl_lock *lock, uint64_t now)
{
    if (now >= atomic_load(&lock->deadline))
        lease_lapse(lock, now);
    if (lock->ran_out || lease_rest_ms(lock, now))
        part(lock, now);
    else
        lock_let_go(lock, now);
}
