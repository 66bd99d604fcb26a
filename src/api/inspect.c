/* SPDX-License-Identifier: MIT */
/* Inspect: who holds the name? */
#include "api/blocking.h"
#include "api/event_loop.h"
#include "api/holder.h"
#include "lock/drive.h"

static int start_inspect(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    if (args->seen && holder_check(args->seen, call_errmsg(lock)) != NXL_OK)
        return NXL_E_INVALID;
    if (lock->client->server_count == 1) /* without memory it shows one */
        (void)inspection_list(lock->inspected);
    lock->inspected->chosen = NULL;
    life_query(&lock->life, CALL_INSPECT, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type inspect_type = {.kind = NXL_OP_INSPECT,
    .request = "request",
    .lease = LEASE_ANY,
    .start = start_inspect};

int nxl_lock_inspect(nxl_lock *lock, nxl_holder *holder)
{
    struct call_args args = {.seen = holder};
    int rc = call_block(lock, &inspect_type, &args);
    return rc == NXL_OK && holder ? nxl_lock_holder(lock, holder) : rc;
}

int nxl_lock_inspect_start(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_enqueue(lock, &inspect_type, &args);
}
