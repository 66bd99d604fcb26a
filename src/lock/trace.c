/* SPDX-License-Identifier: MIT */
/* Counts and traces decisions. */
#include "lock/trace.h"

#include "base/deadline.h"
#include "lock/errmsg.h"
#include "lock/stats.h"

static void trace_event(struct nxl_lock *lock, int kind, int operation,
    int result, const char *text, uint64_t now)
{
    struct nxl_client *client = lock->client;
    if (!client->tracer)
        return;
    uint64_t deadline = atomic_load(&lock->life.lease.deadline);
    nxl_trace trace = {
        .kind = kind,
        .operation = operation,
        .result = result,
        .lock = lock_handle(lock),
        .user = lock_handle(lock)->user,
        .at_ns = now,
        .left_ms = (int64_t)(deadline_left(deadline, now) / NS_PER_MS),
        .text = text,
    };
    client->tracer(client->tracer_arg, &trace);
}

/* With how the one before it failed. Not inlined, so that an attempt that is
 * not traced needs no room for the text. */
static __attribute__((noinline)) void trace_new_attempt(
    struct nxl_lock *lock, uint64_t now)
{
    struct text why;
    text_clear(&why);
    for (unsigned i = 0; i < lock->client->server_count && !why.len; i++)
        errmsg_at(&lock->operation, i, &why);
    trace_event(lock, NXL_TRACE_ATTEMPT, 0, NXL_OK, why.data, now);
}

void trace_attempt(struct nxl_lock *lock, uint64_t now)
{
    lock->client->stats.attempts++;
    if (lock->client->tracer)
        trace_new_attempt(lock, now);
}

/* A call that ends without an answer may have changed the caller's lock; one
 * that acquires is counted as such. */
static bool changes_lock(enum nxl_operation kind)
{
    return kind == NXL_OP_EXTEND || kind == NXL_OP_RELEASE ||
           kind == NXL_OP_ONCE_TELL;
}

void trace_end(struct nxl_lock *lock, int result, uint64_t now)
{
    struct nxl_stats *stats = &lock->client->stats;
    if (lock_acquires(lock))
        stats_acquired(lock->client, result,
            lock->attempts > 1 || lock->life.vote.lined_up,
            elapsed(lock->started_at, now));
    stats->releases += lock->kind == NXL_OP_RELEASE && result == NXL_OK;
    stats->unanswered += result == NXL_UNKNOWN && changes_lock(lock->kind);
    if (lock->client->tracer)
        trace_event(lock, NXL_TRACE_END, (int)lock->kind, result,
            operation_words(&lock->operation), now);
}

void trace_renewal(
    struct nxl_lock *lock, int result, const char *text, uint64_t now)
{
    trace_event(lock, NXL_TRACE_RENEWAL, 0, result, text, now);
}

void trace_loss(
    struct nxl_lock *lock, enum nxl_loss loss, const char *text, uint64_t now)
{
    trace_event(lock, NXL_TRACE_LOSS, 0, (int)loss, text, now);
}
