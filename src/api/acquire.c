/* SPDX-License-Identifier: MIT */
/* Acquire: waiting for a lock. */
#include "api/blocking.h"
#include "api/drive.h"
#include "api/event_loop.h"
#include "api/message.h"
#include "api/waiting.h"
#include "base/deadline.h"

static int start_acquire(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    int64_t wait_ms = args->number;
    uint64_t wait_ns =
        wait_ms == NXL_FOREVER ? NEVER : ms_to_ns((uint64_t)wait_ms);
    if (wait_ms < NXL_FOREVER)
        return message_invalid(call_message(lock),
            "wait_ms is %lld; use 0 or more, or NXL_FOREVER",
            (long long)wait_ms);
    if (lock->interrupted ||
        atomic_exchange(&lock->client->interrupted, false)) {
        bool own = lock->interrupted;
        lock->interrupted = false;
        life_end_lease(&lock->life, now);
        return call_ends(lock, NXL_CANCELLED,
            own ? "nxl_lock_interrupt() was called before this wait"
                : "nxl_client_interrupt() was called before this wait");
    }
    uint64_t from = waiting_from(lock);
    life_acquire(&lock->life, wait_ns, lock_seed(lock, now), now);
    if (wait_ns > 0)
        waiting_begin(lock, from, now);
    return NXL_PENDING;
}

static const struct call_type acquire_type = {.kind = NXL_OP_ACQUIRE,
    .request = "acquire",
    .lease = LEASE_UNWANTED,
    .start = start_acquire};

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
