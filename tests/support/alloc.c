/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of the C library's allocator by name. Its state is plain
 * thread-local data, for nothing here may allocate.
 */
#include "support/alloc.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static __thread unsigned long count;
static __thread unsigned until; /* the failing one; 0: none is to fail */
static __thread bool for_ever, failed;

static bool fails(void)
{
    count++;
    if (until == 0 || --until > 0)
        return false;
    until = for_ever ? 1 : 0;
    failed = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void free(void *old)
{
    __libc_free(old);
}

void alloc_fail_at(unsigned n)
{
    until = n;
    for_ever = failed = false;
}

void alloc_fail_from(unsigned n)
{
    until = n;
    for_ever = true;
    failed = false;
}

bool alloc_stop(void)
{
    bool had = failed;

    until = 0;
    for_ever = failed = false;
    return had;
}

unsigned long alloc_count(void)
{
    return count;
}

bool alloc_counts(void)
{
    return true;
}
