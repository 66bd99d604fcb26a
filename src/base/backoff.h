/* SPDX-License-Identifier: MIT */
/*
 * Random exponential backoff. The delay of step k is drawn from the upper half
 * of min(first * 2^k, most), so that waiters that collided once do not collide
 * again, and none retries at once. Jitter need not be unpredictable, so a small
 * generator (splitmix64) is enough.
 */
#ifndef NXLOCK_BASE_BACKOFF_H
#define NXLOCK_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    uint64_t first_ns, most_ns; /* first_ns >= 1, most_ns >= first_ns */
    uint64_t seed;
    unsigned step;
};

void backoff_init(
    struct backoff *b, uint64_t first_ns, uint64_t most_ns, uint64_t seed);
void backoff_reset(struct backoff *b); /* the next delay is a first one again */
uint64_t backoff_next(struct backoff *b);
/* The longest delay that backoff_next() could return now. */
uint64_t backoff_longest(const struct backoff *b);

/* A delay from the upper half of span, 1 ... most_ns. The step stays. */
uint64_t backoff_within(struct backoff *b, uint64_t span);

/* A number in [0, limit), limit > 0. */
uint64_t backoff_random(struct backoff *b, uint64_t limit);

#endif
