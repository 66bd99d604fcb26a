/* SPDX-License-Identifier: MIT */
/* Starts any call on a lock. */
#include "lock/call_type.h"

#include "base/deadline.h"
#include "lock/drive.h"
#include "lock/loss.h"
#include "lock/errmsg.h"

int call_ends(struct nxl_lock *lock, int result, const char *words)
{
    struct text *message = call_errmsg(lock);
    text_set(message, words);
    return result;
}

int call_ends_lost(struct nxl_lock *lock, const char *call, uint64_t now)
{
    struct text *message = call_errmsg(lock);
    const char *why = loss_words(lock);
    text_clear(message);
    if (*why)
        text_addf(message, "the lock was lost before the %s: %s", call, why);
    else if (now < lock->life.lease.promised)
        text_addf(message,
            "the lock was lost before the %s: an earlier call found the key "
            "removed or taken",
            call);
    else
        text_addf(message,
            "the lease had expired before the %s; its key expires with its TTL",
            call);
    return NXL_LOST;
}

int call_check_wait(
    struct nxl_lock *lock, int64_t wait_ms, uint64_t *wait_ns, uint64_t now)
{
    if (wait_ms < NXL_FOREVER)
        return errmsg_invalid(call_errmsg(lock),
            "wait_ms is %lld; use 0 or more, or NXL_FOREVER",
            (long long)wait_ms);
    *wait_ns = wait_ms == NXL_FOREVER ? NEVER : ms_to_ns((uint64_t)wait_ms);
    if (!lock->interrupted &&
        !atomic_exchange(&lock->client->interrupted, false))
        return NXL_OK;
    bool own = lock->interrupted;
    lock->interrupted = false;
    life_end_lease(&lock->life, now);
    return call_ends(lock, NXL_CANCELLED,
        own ? "nxl_lock_interrupt() was called before this wait"
            : "nxl_client_interrupt() was called before this wait");
}

static int invalid_state(struct nxl_lock *lock, const struct call_type *type,
    enum mode mode, uint64_t now)
{
    struct nxl_client *client = lock->client;
    if (client->closed)
        return errmsg_invalid(call_errmsg(lock),
            "the client of this lock has been freed; free locks before "
            "their client");
    if (!client_enter(client, mode))
        return errmsg_invalid(call_errmsg(lock),
            "this client is in use through the %s API; use another client "
            "for this call",
            client->mode == MODE_LOOP ? "event-loop" : "blocking");
    if (lock->call.running || !list_empty(&lock->call.node))
        return errmsg_invalid(call_errmsg(lock),
            "an operation on this lock is in progress, or its event has "
            "not been fetched with nxl_client_next_event()");
    if (type->lease == LEASE_WANTED && lock->life.lease.stored == LEASE_NONE)
        return errmsg_invalid(
            call_errmsg(lock), "this lock is not held; acquire it first");
    if (type->lease == LEASE_UNWANTED && lease_held(&lock->life.lease, now))
        return errmsg_invalid(call_errmsg(lock),
            "this lock is already held; release it, or use another handle");
    return NXL_OK;
}

static int start_several(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args, uint64_t now)
{
    if (!type->start_several)
        return errmsg_invalid(call_errmsg(front),
            "this handle has several names; use one of nxl_lock_new(), which "
            "has one, for this call");
    return type->start_several(front, type, args, now);
}

int call_start(struct nxl_lock *lock, const struct call_type *type,
    enum mode mode, const struct call_args *args, uint64_t now)
{
    int rc = invalid_state(lock, type, mode, now);
    if (rc != NXL_OK)
        return rc;
    client_update_peers(lock->client);
    if (lock->group)
        rc = start_several(lock, type, args, now);
    else
        rc = type->start(lock, args, now);
    if (rc == NXL_PENDING)
        lock_begin(lock, type->kind, type->request, now);
    else
        lock_run(lock, now);
    return rc;
}
