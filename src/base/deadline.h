/* SPDX-License-Identifier: MIT */
/*
 * Deadlines are absolute times of clock_now(), in ns. Sums saturate at NEVER;
 * they do not wrap round into the past.
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

/* Of an optional time limit: there is none; and it has passed already. */
#define TIME_LIMIT_NONE UINT64_C(0)
#define TIME_LIMIT_PASSED UINT64_C(1)

/* Whether an optional time limit has passed. */
static inline bool limit_passed(uint64_t limit, uint64_t now)
{
    return limit && now >= limit;
}

/* The time that is ns before at, or 0. */
static inline uint64_t deadline_before(uint64_t at, uint64_t ns)
{
    return at > ns ? at - ns : 0;
}

/* ns from since to now, 0 if since has not come yet. */
static inline uint64_t elapsed(uint64_t since, uint64_t now)
{
    return now > since ? now - since : 0;
}

/* ns from now to deadline, 0 when it has passed. */
static inline uint64_t deadline_left(uint64_t deadline, uint64_t now)
{
    return deadline > now ? deadline - now : 0;
}

/* A timeout for poll(): whole milliseconds, rounded up so that it never wakes
 * too early; -1 for NEVER. */
static inline int deadline_poll_ms(uint64_t deadline, uint64_t now)
{
    if (deadline == NEVER)
        return -1;
    uint64_t ms = deadline_left(deadline, now) / NS_PER_MS +
                  (deadline_left(deadline, now) % NS_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

#endif
