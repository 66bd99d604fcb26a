/* SPDX-License-Identifier: MIT */
/* Times of nxl_now_ns(), and timers that end a wait at one of them. */
#ifndef NXLOCK_CLI_CLOCK_H
#define NXLOCK_CLI_CLOCK_H

#include <stdint.h>
#include <sys/timerfd.h>

#include <nxlock.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define MS_PER_S 1000

/* No time to wake at. */
#define NEVER UINT64_MAX

/* The whole milliseconds from one time to a later one. */
static inline int64_t ms_between(uint64_t from, uint64_t until)
{
    return (int64_t)((until - from) / NS_PER_MS);
}

/* Makes a timerfd readable from wake_ns on; NEVER: disarms it. */
static inline void timer_wake_at(int timer, uint64_t wake_ns)
{
    struct itimerspec spec = {{0, 0}, {0, 0}};
    uint64_t now = nxl_now_ns();

    if (wake_ns != NEVER) {
        uint64_t left = wake_ns > now ? wake_ns - now : 1;
        spec.it_value.tv_sec = (time_t)(left / NS_PER_S);
        spec.it_value.tv_nsec = (long)(left % NS_PER_S);
    }
    timerfd_settime(timer, 0, &spec, NULL);
}

#endif
