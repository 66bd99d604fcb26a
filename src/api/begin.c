/* SPDX-License-Identifier: MIT */
/* Begin: acquires a lock for work that must be done once, and records that. */
#include "lock/once.h"

#include <stdio.h>

#include "api/blocking.h"
#include "api/event_loop.h"
#include "api/options.h"
#include "lock/drive.h"
#include "lock/errmsg.h"

static bool check_options(struct nxl_lock *lock,
    const nxl_once_options *options, int64_t wait_ms, nxl_once_options *o)
{
    struct text *message = call_errmsg(lock);
    if (!options_once(options, lock->life.terms.ttl_ms, o, message))
        return false;
    if (o->mode == NXL_ONCE_LOOK && wait_ms != 0) {
        errmsg_invalid(message,
            "wait_ms is %lld; NXL_ONCE_LOOK does not wait: use 0",
            (long long)wait_ms);
        return false;
    }
    return true;
}

static void take_options(struct once *once, const nxl_once_options *o)
{
    snprintf(once->fingerprint, sizeof(once->fingerprint), "%s",
        o->fingerprint ? o->fingerprint : "");
    once->terms = (struct once_terms){
        .retries = o->mode == NXL_ONCE_RETRY,
        .fingerprint = slice_of(once->fingerprint),
        .keep_ms = (uint64_t)o->keep_ms,
    };
}

static const char *unsupported(const struct nxl_lock *lock)
{
    if (lock->client->server_count > 1)
        return "a record needs one server: a minority that forgets may end a "
               "lease early, but a record must be kept for days; use one of "
               "them, with appendonly yes, for this work";
    if (lock->operation.requests[0].server->dialect.ttl_in_values)
        return "a record needs scripts, which scheme=timestamp does not use";
    return NULL;
}

static int start_begin(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    const nxl_once_options *options = args->options;
    int64_t wait_ms = args->number;
    const char *why = unsupported(lock);
    nxl_once_options o;
    uint64_t wait_ns;
    if (token_has_share((struct slice){lock->own_token, lock->own_len}))
        return errmsg_invalid(call_errmsg(lock),
            "permits or shared is set: work that must be done once needs an "
            "exclusive lock; use a handle without them");
    if (why)
        return call_ends(lock, NXL_E_UNSUPPORTED, why);
    if (lock->client->guards_failover && !lock->client->copies_decided)
        return call_ends(lock, NXL_E_URL,
            "a failover may lose the record: write wait_replicas=1 in the URL "
            "(2: for two failures), or wait_replicas=0 (HARM: work may be done "
            "twice)");
    if (!once_of(lock))
        return call_ends(
            lock, NXL_E_NOMEM, "out of memory: cannot begin the work");
    if (!check_options(lock, options, wait_ms, &o))
        return NXL_E_INVALID;
    bool looks = o.mode == NXL_ONCE_LOOK;
    int rc = looks ? NXL_OK : call_check_wait(lock, wait_ms, &wait_ns, now);
    if (rc != NXL_OK)
        return rc;
    once_forget_work(lock->once);
    take_options(lock->once, &o);
    lock->operation.requests[0].server->handshake_terms.asks_fsync = true;
    reply_values_clear(&lock->once->found);
    if (looks)
        life_query(&lock->life, CALL_READ_RECORD, lock_seed(lock, now), now);
    else
        life_begin(&lock->life, wait_ns, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type begin_type = {.kind = NXL_OP_ONCE_BEGIN,
    .request = "begin",
    .lease = LEASE_UNWANTED,
    .start = start_begin};

int nxl_once_begin(
    nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms, .options = options};
    return call_block(lock, &begin_type, &args);
}

int nxl_once_begin_start(
    nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms, .options = options};
    return call_enqueue(lock, &begin_type, &args);
}
