/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: a process that is not scheduled before it reads its deadline. If
 * that is near, until it is over; with NXLOCK_TEST_LATE_MS for so long after
 * each acquire that had to wait.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <nxlock.h>

#define NS_PER_MS UINT64_C(1000000)
#define NEAR (50 * NS_PER_MS)
#define WAITED (300 * NS_PER_MS)

static uint64_t began; /* the last acquire; 0: none since the last wait */

int nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms)
{
    int (*next)(nxl_lock *, int64_t);
    *(void **)&next = dlsym(RTLD_NEXT, "nxl_lock_acquire_start");
    began = nxl_now_ns();
    return next(lock, wait_ms);
}

static void sleep_until(uint64_t then)
{
    while (nxl_now_ns() < then) {
        struct timespec pause = {0, (long)NS_PER_MS};
        nanosleep(&pause, NULL);
    }
}

uint64_t nxl_lock_deadline(const nxl_lock *lock)
{
    const char *late = getenv("NXLOCK_TEST_LATE_MS");
    uint64_t (*next)(const nxl_lock *);
    *(void **)&next = dlsym(RTLD_NEXT, "nxl_lock_deadline");
    uint64_t deadline = next(lock), now = nxl_now_ns();

    if (deadline > now && deadline - now < NEAR) {
        sleep_until(deadline + NS_PER_MS);
    } else if (late && began != 0 && now - began > WAITED) {
        began = 0;
        sleep_until(now + strtoul(late, NULL, 10) * NS_PER_MS);
    }
    return next(lock);
}
