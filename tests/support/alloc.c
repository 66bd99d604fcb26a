/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of the C library's allocator by name. Its state is plain
 * data, for nothing here may allocate.
 */
#include "support/alloc.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static __thread unsigned long count;
static __thread unsigned until; /* the failing one; 0: none is to fail */
static __thread bool for_ever, failed;
static atomic_long blocks, bytes;

/* What glibc sets aside for it, with its own word in front. */
static long size_of(void *block)
{
    return (long)(malloc_usable_size(block) + sizeof(size_t));
}

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

static void *given(void *block)
{
    if (block) {
        blocks++;
        bytes += size_of(block);
    }
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : given(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : given(__libc_calloc(number, size));
}

void *realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    long before = old ? size_of(old) : 0;
    void *block = __libc_realloc(old, size);
    if (!old)
        return given(block);
    if (block) {
        bytes += size_of(block) - before;
    } else if (size == 0) { /* that frees it */
        blocks--;
        bytes -= before;
    }
    return block;
}

void free(void *old)
{
    if (old) {
        blocks--;
        bytes -= size_of(old);
    }
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

long alloc_blocks(void)
{
    return blocks;
}

long alloc_bytes(void)
{
    return bytes;
}

bool alloc_counts(void)
{
    return true;
}
