/* SPDX-License-Identifier: MIT */
/* Retry delays that grow with the number of rivals. The constants were chosen
 * with a model of the network; docs/redlock.md has what they cost and save. */
#include "core/contention.h"

#include "base/deadline.h"

/* The step, in rounds: clients that start within one round trip of each other
 * split the vote. */
#define STEP_ROUNDS 5

/* The step is at least this part of the first delay. Without that, a client on
 * a fast network would ask for a lock that is held for long too often. */
#define STEP_PART 4

/* After a second lost round, so many other clients are assumed beside those
 * that won a round, instead of finding each of them by another lost one. The
 * first lost round does not count them: a lock that is rarely contended is soon
 * free again. */
#define UNSEEN_RIVALS 5

uint64_t contention_longest(
    const struct backoff *b, unsigned lost, uint64_t round_ns)
{
    uint64_t span = b->first_ns;

    if (lost > 1) {
        uint64_t rivals = (uint64_t)lost + UNSEEN_RIVALS;
        uint64_t most_step = b->most_ns / rivals;
        uint64_t step = later(earlier(round_ns, most_step) * STEP_ROUNDS,
            b->first_ns / STEP_PART);
        /* Compare before the product: it might overflow. */
        span = step > most_step ? b->most_ns : later(span, step * rivals);
    }
    return span;
}

uint64_t contention_delay(struct backoff *b, unsigned lost, uint64_t round_ns)
{
    return backoff_within(b, contention_longest(b, lost, round_ns));
}
