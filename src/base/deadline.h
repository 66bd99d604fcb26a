/* SPDX-License-Identifier: MIT */
/*
 * Deadlines: absolute ns of clock_now(). Arithmetic saturates, so that a sum
 * can become "never" but not the past. All conversions of units are here.
 */
#ifndef NXLOCK_BASE_DEADLINE_H
#define NXLOCK_BASE_DEADLINE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define NEVER UINT64_MAX
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static inline uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / NS_PER_MS ? NEVER : ms * NS_PER_MS;
}

static inline uint64_t deadline_after(uint64_t now, uint64_t ns)
{
    return ns > NEVER - now ? NEVER : now + ns;
}

static inline uint64_t deadline_after_ms(uint64_t now, uint64_t ms)
{
    return deadline_after(now, ms_to_ns(ms));
}

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether an optional limit has come; 0: there is none. */
static inline bool limit_passed(uint64_t limit, uint64_t now)
{
    return limit && now >= limit;
}

/* ns from now to deadline, 0 when it has passed. */
static inline uint64_t deadline_left(uint64_t deadline, uint64_t now)
{
    return deadline > now ? deadline - now : 0;
}

/* For poll(): whole milliseconds rounded up, so that a wake-up is not too
 * early; -1 for NEVER. */
static inline int deadline_poll_ms(uint64_t deadline, uint64_t now)
{
    if (deadline == NEVER)
        return -1;
    uint64_t ms = deadline_left(deadline, now) / NS_PER_MS +
                  (deadline_left(deadline, now) % NS_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

#endif
