/* SPDX-License-Identifier: MIT */
/*
 * Keeps: no result waits for a server that was silent before; an acquire takes
 * at most as long again as its round took, an inspection LONGEST longer.
 */
#include "api/linger.h"

#include "api/machine.h"
#include "base/deadline.h"

#define LONGEST (50 * NS_PER_MS)

bool linger_on(const struct operation *op, unsigned server)
{
    const struct server *s = &lock_of(op)->client->servers[server];
    const struct acquire *a = &op->machine.acquire;
    if (op->kind == NXL_OP_INSPECT)
        return op->machine.round.verdict == VERDICT_YES ||
               op->machine.round.verdict == VERDICT_NO;
    bool connecting = s->state == SERVER_DIALLING || s->state == SERVER_SHAKING;
    return is_acquire(op) && a->verdict == VERDICT_YES && connecting &&
           s->connect_end >= deadline_after_ms(a->round_started,
                                 s->endpoint.settings.timeout_ms);
}

uint64_t linger_until(const struct operation *op, uint64_t now)
{
    uint64_t until = deadline_after(now, LONGEST);
    if (!is_acquire(op))
        return earlier(until, op->machine.round.terms.end);
    uint64_t took = now - op->machine.acquire.round_started;
    return earlier(earlier(until, deadline_after(now, took)),
        op->machine.acquire.terms.end);
}

void linger_leave(struct operation *op, unsigned server, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    if (server_abandon(&lock->client->servers[server],
            &lock->requests[server], false, now) &&
        is_acquire(op))
        lock->reached &= ~(1U << server);
}

void linger_end(struct operation *op, uint64_t now)
{
    for (unsigned i = 0; op->late; i++) {
        if (op->late & (1U << i))
            linger_leave(op, i, now);
        op->late &= ~(1U << i);
    }
}
