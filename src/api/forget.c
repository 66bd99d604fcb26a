/* SPDX-License-Identifier: MIT */
/* Forget: removes the record of work that must be done once. */
#include "lock/once.h"

#include "api/blocking.h"
#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/errmsg.h"

static int start_forget(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    struct once *once = lock->once;
    (void)args;
    if (!once || !once->answered || !once->record.state)
        return errmsg_invalid(call_errmsg(lock),
            "there is no record to remove; look with nxl_once_begin() and "
            "NXL_ONCE_LOOK first");
    once->terms.line = once_line(once);
    life_query(&lock->life, CALL_FORGET, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type forget_type = {.kind = NXL_OP_ONCE_FORGET,
    .request = "removal",
    .lease = LEASE_ANY,
    .start = start_forget};

int nxl_once_forget(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_block(lock, &forget_type, &args);
}

int nxl_once_forget_start(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_enqueue(lock, &forget_type, &args);
}
