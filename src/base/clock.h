/* SPDX-License-Identifier: MIT */
/* The only place that reads a clock. */
#ifndef NXLOCK_BASE_CLOCK_H
#define NXLOCK_BASE_CLOCK_H

#include <stdint.h>

/* ns of CLOCK_BOOTTIME, which counts suspend as the server's expiry does;
 * CLOCK_MONOTONIC where the kernel has no BOOTTIME. Never 0. */
uint64_t clock_now(void);

#endif
