/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out when a test says so. A program that includes this
 * gets its own malloc, calloc and realloc, which count and fail; the C
 * library's functions underneath are glibc's. A sanitizer brings its own, so
 * in such a build alloc_fail_at() and alloc_fail_from() skip the test.
 *
 * Failing and counting is per thread. The way to try every place:
 *
 *     for (unsigned n = 1; ; n++) {
 *         alloc_fail_at(n);
 *         rc = ...;
 *         if (!alloc_stop())
 *             break;        // it needed fewer than n, and rc is success
 *         ... rc is a clean error ...
 *     }
 */
#ifndef NXLOCK_TEST_ALLOC_H
#define NXLOCK_TEST_ALLOC_H

#include <stdbool.h>

/* The n-th allocation from now on (1: the next) fails, once. */
void alloc_fail_at(unsigned n);
/* That one and all later ones fail. */
void alloc_fail_from(unsigned n);
/* Nothing fails any more. True when something had failed. */
bool alloc_stop(void);

/* Allocations of this thread so far (realloc counts); 0 under a sanitizer. */
unsigned long alloc_count(void);
/* Blocks in use, of all threads, without those of aligned_alloc() and the
 * like; 0 under a sanitizer. */
long alloc_blocks(void);
/* What those blocks take, with what the allocator adds to each. */
long alloc_bytes(void);
/* False in a sanitizer's build: nothing is counted. */
bool alloc_counts(void);

#endif
