/* SPDX-License-Identifier: MIT */
/* Counts allocations by standing in front of the C library's allocator. The
 * counter is the thread's own: counting costs one increment and no thread
 * disturbs another. Under a sanitizer, which stands there itself, or with
 * another C library nothing is counted and allocs_known() says so. */
#include "bench.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static _Thread_local uint64_t made;

void *malloc(size_t size)
{
    made++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    made++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    made++;
    return __libc_realloc(old, size);
}

uint64_t allocs_made(void)
{
    return made;
}

bool allocs_known(void)
{
    return true;
}

#else

uint64_t allocs_made(void)
{
    return 0;
}

bool allocs_known(void)
{
    return false;
}

#endif
