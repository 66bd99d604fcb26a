/* SPDX-License-Identifier: MIT */
/*
 * The server's clock as seen from here: its difference from ours, and how far
 * that may be wrong. Values of the timestamp scheme are times of this clock, so
 * the clients' own clocks need not agree.
 */
#ifndef NXLOCK_WIRE_TIMESTAMPS_SERVER_CLOCK_H
#define NXLOCK_WIRE_TIMESTAMPS_SERVER_CLOCK_H

#include "wire/timestamps/timestamps.h"

/* Records that the server's clock showed server_ms, give or take error_ms, at
 * some moment between sent and now. */
void server_clock_learn(struct server_clock *c, uint64_t sent, uint64_t now,
    int64_t server_ms, int64_t error_ms);

/* Was the clock read recently enough to rely on? */
bool server_clock_fresh(const struct server_clock *c, uint64_t now);

/* The earliest and the latest unix time that the server's clock may show, ms.
 */
int64_t server_clock_low(const struct server_clock *c, uint64_t now);
int64_t server_clock_high(const struct server_clock *c, uint64_t now);

#endif
