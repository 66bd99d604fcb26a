/* SPDX-License-Identifier: MIT */
/*
 * Cycles after which neither a descriptor nor memory stays; with fewer of them
 * under valgrind, which looks at each block.
 */
#ifndef NXLOCK_TESTS_LIVE_LEAKS_RIG_H
#define NXLOCK_TESTS_LIVE_LEAKS_RIG_H

#include "live_rig.h"

#include <malloc.h>

/* A buffer or two. One lost allocation a cycle is more. */
#define MEMORY_SLACK 2048

static inline bool slow(void)
{
    return RUNNING_ON_VALGRIND || getenv("NXLOCK_VALGRIND");
}

/* In use; nothing is known of a sanitizer's malloc (0 then). */
static inline size_t memory(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    if (!LIVE_INSTRUMENTED && !slow())
        return mallinfo2().uordblks;
#endif
    return 0;
}

/* Runs so many cycles; afterwards it is as it was after the first ones. A
 * buffer may still grow to what it needs; what leaks grows again and again. */
static inline void assert_steady(unsigned cycles, void (*cycle)(unsigned))
{
    size_t bytes, after;
    unsigned n = 0, windows = 0, first = cycles / 10 < 3 ? 3 : cycles / 10;
    while (n < first)
        cycle(n++);
    int fds = count_fds();
    do {
        bytes = memory();
        for (unsigned i = 0; i < cycles; i++)
            cycle(n++);
        assert_int_equal(count_fds(), fds);
        after = memory();
    } while (after > bytes + MEMORY_SLACK && ++windows < 3);
    assert_between(after, 0, bytes + MEMORY_SLACK);
}

static inline nxl_lock *labelled(nxl_client *client, const char *name)
{
    return lock_with(client, name, .label = "host:1234:job");
}

/* malloc counts what its caches of each thread keep as used; do without. */
static inline void count_exactly(char **argv)
{
    static const char tunable[] = "GLIBC_TUNABLES";
    if (LIVE_INSTRUMENTED || slow() || getenv(tunable))
        return;
    setenv(tunable, "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", argv);
}

#endif
