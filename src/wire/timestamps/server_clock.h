/* SPDX-License-Identifier: MIT */
/*
 * The server's clock as seen from here: how far it is from ours and how far
 * that may be wrong. Values of the timestamp scheme are times of this clock,
 * so that the clients' own clocks need not agree.
 */
#ifndef NXLOCK_WIRE_TIMESTAMPS_SERVER_CLOCK_H
#define NXLOCK_WIRE_TIMESTAMPS_SERVER_CLOCK_H

#include "wire/timestamps/timestamps.h"

/* The server said server_ms, error_ms at most beside it, in reply to what was
 * sent at sent and answered at now. */
void server_clock_learn(struct server_clock *c, uint64_t sent, uint64_t now,
    int64_t server_ms, int64_t error_ms);

/* Learnt recently enough to decide by. */
bool server_clock_fresh(const struct server_clock *c, uint64_t now);

/* The server's unix time in ms: not before this, and not after that. */
int64_t server_clock_low(const struct server_clock *c, uint64_t now);
int64_t server_clock_high(const struct server_clock *c, uint64_t now);

#endif
