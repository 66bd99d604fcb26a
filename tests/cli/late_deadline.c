/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: a process that is not scheduled before it reads its deadline, if
 * that is near, until it is over.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

#include <nxlock.h>

#define NEAR_NS 50000000
#define MORE_NS 1000000

uint64_t nxl_lock_deadline(const nxl_lock *lock)
{
    uint64_t (*next)(const nxl_lock *);
    *(void **)&next = dlsym(RTLD_NEXT, "nxl_lock_deadline");
    uint64_t deadline = next(lock), now = nxl_now_ns();

    if (deadline > now && deadline - now < NEAR_NS) {
        struct timespec pause = {0, (long)(deadline - now + MORE_NS)};
        nanosleep(&pause, NULL);
    }
    return next(lock);
}
