/* SPDX-License-Identifier: MIT */
/* Extend: a held lease gets a new TTL. */
#include "api/blocking.h"
#include "api/event_loop.h"
#include "api/options.h"
#include "lock/drive.h"
#include "lock/members.h"

/* Checks the TTL, and puts the lock's own in place of 0. */
static int check_ttl(struct nxl_lock *lock, int64_t *ttl_ms)
{
    struct text why;
    if (*ttl_ms == 0)
        *ttl_ms = lock->life.terms.ttl_ms;
    if (options_ttl(lock->client, *ttl_ms, &why))
        return NXL_OK;
    operation_set_errmsg(&lock->operation, &why);
    return NXL_E_INVALID;
}

static int start_extend(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    int64_t ttl_ms = args->number;
    int rc = check_ttl(lock, &ttl_ms);
    if (rc != NXL_OK)
        return rc;
    if (!life_extend(&lock->life, (uint32_t)ttl_ms, lock_seed(lock, now), now))
        return call_ends_lost(lock, "extension", now);
    return NXL_PENDING;
}

/* If one name is lost, the others are not extended. */
static int start_several(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args, uint64_t now)
{
    int64_t ttl_ms = args->number;
    int rc = check_ttl(front, &ttl_ms);
    if (rc != NXL_OK)
        return rc;
    if (!lease_extendable(&front->life.lease, now)) {
        lease_lose(&front->life.lease, now);
        return call_ends_lost(front, "extension", now);
    }
    return members_call(front, type, CALL_EXTEND, args, now);
}

static const struct call_type extend_type = {.kind = NXL_OP_EXTEND,
    .request = "extend",
    .lease = LEASE_WANTED,
    .start = start_extend,
    .start_several = start_several};

int nxl_lock_extend(nxl_lock *lock, int64_t ttl_ms)
{
    struct call_args args = {.number = ttl_ms};
    return call_block(lock, &extend_type, &args);
}

int nxl_lock_extend_start(nxl_lock *lock, int64_t ttl_ms)
{
    struct call_args args = {.number = ttl_ms};
    return call_enqueue(lock, &extend_type, &args);
}
