/* SPDX-License-Identifier: MIT */
/* What the two files of nxlock-bench-quorum share. */
#ifndef NXLOCK_BENCH_QUORUM_H
#define NXLOCK_BENCH_QUORUM_H

#include "bench.h"

#define QUORUM_SERVERS 5

/* Cycles of acquire and release by hand: five hiredis contexts, one poll(),
 * an answer as soon as three have said so. -1 after a message. */
struct floor_quorum;
struct floor_quorum *floor_quorum_open(const struct server *servers);
int floor_quorum_cycle(struct floor_quorum *floor);
void floor_quorum_close(struct floor_quorum *floor);

#endif
