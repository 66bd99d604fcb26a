/* SPDX-License-Identifier: MIT */
/* How a wait for a lock ends that was not granted. */
#include "core/witness.h"

#include "base/deadline.h"
#include "model/guard.h"

enum verdict witness_verdict(const struct witness *w, uint64_t now)
{
    if (!guarded(GUARD_WITNESS) && w->busy_until)
        return VERDICT_NO;
    if (w->unanswered)
        return VERDICT_UNKNOWN;
    if (w->busy_until && now <= w->busy_until)
        return VERDICT_NO;
    return w->line_may_have_granted ? VERDICT_UNKNOWN : VERDICT_FAULT;
}

uint64_t busy_until(uint64_t sent_at, int64_t left_ms, uint64_t timeout_ns)
{
    if (left_ms == LEFT_FOREVER)
        return NEVER;
    return left_ms < 0 ? deadline_after(sent_at, timeout_ns)
                       : deadline_after_ms(sent_at, (uint64_t)left_ms);
}
