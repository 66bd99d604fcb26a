/* SPDX-License-Identifier: MIT */
/*
 * Reads the clock.
 *
 * Invariant: all readings in a process are of the same clock, and it never
 * stands still, for then leases would not end. Where CLOCK_BOOTTIME is refused
 * (a sandbox without the system call, before Linux 5.3) it always is, so the
 * fallback need not be remembered.
 */
#include "base/clock.h"

#include <time.h>

#include "base/deadline.h"

uint64_t clock_now(void)
{
    struct timespec ts = {0, 0};

    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
        (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    return now != 0 ? now : 1;
}

struct timespec clock_after(clockid_t id, uint64_t ns)
{
    struct timespec ts = {0, 0};

    (void)clock_gettime(id, &ts);
    uint64_t at = deadline_after((uint64_t)ts.tv_nsec, ns);
    ts.tv_sec += (time_t)(at / NS_PER_S);
    ts.tv_nsec = (long)(at % NS_PER_S);
    return ts;
}
