/* SPDX-License-Identifier: MIT */
/* Random retry delays that grow.
 *
 * Invariant: a delay is never 0 and never above most_ns, whatever the step. */
#include "base/backoff.h"

#include <stdbool.h>

void backoff_init(
    struct backoff *b, uint64_t first_ns, uint64_t most_ns, uint64_t seed)
{
    b->first_ns = first_ns;
    b->most_ns = most_ns;
    b->seed = seed;
    b->step = 0;
}

void backoff_reset(struct backoff *b)
{
    b->step = 0;
}

/* One step of splitmix64. */
static uint64_t next_number(struct backoff *b)
{
    uint64_t z = b->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t backoff_random(struct backoff *b, uint64_t limit)
{
    /* The bias of the remainder is limit / 2^64: nothing for a jitter. */
    return next_number(b) % limit;
}

/* Shift most_ns right to compare: first_ns << step might overflow. */
static bool may_grow(const struct backoff *b)
{
    return b->step < 64 && b->first_ns <= b->most_ns >> b->step;
}

uint64_t backoff_longest(const struct backoff *b)
{
    return may_grow(b) ? b->first_ns << b->step : b->most_ns;
}

uint64_t backoff_next(struct backoff *b)
{
    uint64_t span = backoff_longest(b);

    b->step += may_grow(b);
    return backoff_within(b, span);
}

uint64_t backoff_within(struct backoff *b, uint64_t span)
{
    uint64_t least = span - span / 2;
    return least + backoff_random(b, span / 2 + 1);
}
