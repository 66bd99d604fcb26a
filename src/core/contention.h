/* SPDX-License-Identifier: MIT */
/*
 * How long to wait after a round over several servers was lost to other
 * clients. Each lost round counts as one rival, and the delay grows by the same
 * step for each of them instead of doubling.
 *
 * The reason: without a line, waiters share a lock best if all of them try
 * equally often, and more rarely the more there are. Delays that double drive
 * them apart: a client that has lost five rounds asks far less often than one
 * that has just come, and so goes on losing. A reply does not say how many
 * clients wait; the number of lost rounds is what a client knows of it without
 * another request. If one client holds the lock for long, this counts too many,
 * and the delays become the longest ones, as they should.
 *
 * Invariant: a delay is never 0 and never above b->most_ns.
 */
#ifndef NXLOCK_CORE_CONTENTION_H
#define NXLOCK_CORE_CONTENTION_H

#include <stdint.h>

#include "base/backoff.h"

/* The delay after this call has lost its lost-th round, >= 1, to other clients.
 * round_ns: how long that round took; 0: unknown. */
uint64_t contention_delay(struct backoff *b, unsigned lost, uint64_t round_ns);
/* The longest that this delay could be. */
uint64_t contention_longest(
    const struct backoff *b, unsigned lost, uint64_t round_ns);

#endif
