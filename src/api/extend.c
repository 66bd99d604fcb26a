/* SPDX-License-Identifier: MIT */
/* Extend: a held lease gets a new TTL. */
#include "api/blocking.h"
#include "api/event_loop.h"
#include "api/options.h"
#include "lock/drive.h"

static int start_extend(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    int64_t ttl_ms = args->number;
    if (ttl_ms == 0)
        ttl_ms = lock->life.terms.ttl_ms;
    struct text why;
    if (!options_ttl(lock->client, ttl_ms, &why)) {
        operation_tell(&lock->operation, &why);
        return NXL_E_INVALID;
    }
    if (!life_extend(&lock->life, (uint32_t)ttl_ms, lock_seed(lock, now), now))
        return call_ends_lost(lock, "extension", now);
    return NXL_PENDING;
}

static const struct call_type extend_type = {.kind = NXL_OP_EXTEND,
    .request = "extend",
    .lease = LEASE_WANTED,
    .start = start_extend};

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
