/* SPDX-License-Identifier: MIT */
/* Reads the clock. No other file does. */
#ifndef NXLOCK_BASE_CLOCK_H
#define NXLOCK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_BOOTTIME, which goes on during suspend, as a TTL on the
 * server does; of CLOCK_MONOTONIC if CLOCK_BOOTTIME is refused. Never
 * 0. */
uint64_t clock_now(void);

/* The time in ns from now, by a clock of the system, for its functions that
 * sleep until a time. */
struct timespec clock_after(clockid_t id, uint64_t ns);

#endif
