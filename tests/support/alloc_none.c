/* SPDX-License-Identifier: MIT */
/* Instead of alloc.c where a sanitizer has the allocator: such tests skip. */
#include "support/alloc.h"

#include "support/test.h"

void alloc_fail_at(unsigned n)
{
    (void)n;
    test_skip("a sanitizer has the allocator; the plain build tests this");
}

void alloc_fail_from(unsigned n)
{
    alloc_fail_at(n);
}

bool alloc_stop(void)
{
    return false;
}

unsigned long alloc_count(void)
{
    return 0;
}

long alloc_blocks(void)
{
    return 0;
}

long alloc_bytes(void)
{
    return 0;
}

bool alloc_counts(void)
{
    return false;
}
