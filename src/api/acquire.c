/* SPDX-License-Identifier: MIT */
/* Acquire: waiting for a lock. */
#include "api/blocking.h"
#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/members.h"
#include "lock/waiting.h"

static int start_acquire(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    uint64_t wait_ns;
    int rc = call_check_wait(lock, args->number, &wait_ns, now);
    if (rc != NXL_OK)
        return rc;
    life_acquire(&lock->life, wait_ns, lock_seed(lock, now), now);
    if (wait_ns > 0)
        waiting_begin(lock, now);
    return NXL_PENDING;
}

static int start_several(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args, uint64_t now)
{
    uint64_t wait_ns;
    int rc = call_check_wait(front, args->number, &wait_ns, now);
    if (rc == NXL_CANCELLED)
        members_end_leases(front, now);
    return rc == NXL_OK ? members_acquire(front, type, wait_ns, now) : rc;
}

static const struct call_type acquire_type = {.kind = NXL_OP_ACQUIRE,
    .request = "acquire",
    .lease = LEASE_UNWANTED,
    .start = start_acquire,
    .start_several = start_several};

int nxl_lock_acquire(nxl_lock *lock, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms};
    return call_block(lock, &acquire_type, &args);
}

int nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms};
    return call_enqueue(lock, &acquire_type, &args);
}
