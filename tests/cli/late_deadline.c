/* SPDX-License-Identifier: MIT */
/*
 * Makes the command read its deadlines late, like a process that is not
 * scheduled, so that 'nxlock drill' can be seen to blame no server for it:
 *
 *     NXLOCK_TEST_LATE=near    a deadline that is near is read when it is over
 *     NXLOCK_TEST_LATE=800     and each acquire that had to wait is followed by
 *                              so many milliseconds
 *
 * Linked with --wrap, as the command calls the library directly.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <nxlock.h>

#define NS_PER_MS UINT64_C(1000000)
#define NEAR (50 * NS_PER_MS)
#define WAITED (300 * NS_PER_MS)

static uint64_t began; /* the last acquire; 0: none since the last wait */

int __real_nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms);
int __wrap_nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms);
uint64_t __real_nxl_lock_deadline(const nxl_lock *lock);
uint64_t __wrap_nxl_lock_deadline(const nxl_lock *lock);

int __wrap_nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms)
{
    began = nxl_now_ns();
    return __real_nxl_lock_acquire_start(lock, wait_ms);
}

static void sleep_until(uint64_t then)
{
    while (nxl_now_ns() < then) {
        struct timespec pause = {0, (long)NS_PER_MS};
        nanosleep(&pause, NULL);
    }
}

uint64_t __wrap_nxl_lock_deadline(const nxl_lock *lock)
{
    const char *late = getenv("NXLOCK_TEST_LATE");
    uint64_t deadline = __real_nxl_lock_deadline(lock), now = nxl_now_ns();

    if (!late)
        return deadline;
    uint64_t waited_ms = strtoul(late, NULL, 10); /* "near": 0 */
    if (deadline > now && deadline - now < NEAR) {
        sleep_until(deadline + NS_PER_MS);
    } else if (waited_ms > 0 && began != 0 && now - began > WAITED) {
        began = 0;
        sleep_until(now + waited_ms * NS_PER_MS);
    }
    return __real_nxl_lock_deadline(lock);
}
