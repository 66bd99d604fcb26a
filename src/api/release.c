/* SPDX-License-Identifier: MIT */
/* Release: gives up the lock. */
#include "api/blocking.h"
#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/members.h"

static int start_release(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    (void)args;
    if (!life_release(&lock->life, lock_seed(lock, now), now))
        return call_ends_lost(lock, "release", now);
    return NXL_PENDING;
}

static int start_several(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args, uint64_t now)
{
    lease_end(&front->life.lease, now);
    return members_call(front, type, CALL_RELEASE, args, now);
}

static const struct call_type release_type = {.kind = NXL_OP_RELEASE,
    .request = "release",
    .lease = LEASE_WANTED,
    .start = start_release,
    .start_several = start_several};

int nxl_lock_release(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_block(lock, &release_type, &args);
}

int nxl_lock_release_start(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_enqueue(lock, &release_type, &args);
}
