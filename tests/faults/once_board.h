/* SPDX-License-Identifier: MIT */
/*
 * What the workers of nxlock-once-faults know of each key, in a file that all
 * of them map: it outlives each of them, however it dies.
 *
 * Invariant: what is written here was told to a worker by the library before.
 */
#ifndef NXLOCK_TESTS_FAULTS_ONCE_BOARD_H
#define NXLOCK_TESTS_FAULTS_ONCE_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

enum board_count {
    COUNT_DOUBT,     /* begins that found it in doubt */
    COUNT_TOLD,      /* verdicts that were accepted */
    COUNT_TELL_LOST, /* verdicts that came after another one had begun */
    COUNT_STOPPED,   /* SIGSTOP of itself */
    COUNT_WRONG,     /* what must never be; said on standard error */
    COUNTS
};

/* DONE: it was told to a worker, by its own verdict (TOLD) or by a begin. */
enum board_flag { FLAG_DONE = 1, FLAG_DOUBT = 2, FLAG_TOLD = 4 };

struct board_key {
    _Atomic uint64_t fence; /* the greatest that was told */
    _Atomic uint32_t flags; /* of what was told */
    _Atomic uint32_t ends;  /* how often it was found done, or in doubt */
};

struct board {
    uint64_t keys;
    _Atomic uint64_t first; /* those before it are finished */
    _Atomic uint64_t count[COUNTS];
    struct board_key key[];
};

/* Makes a new file for that many keys; NULL: it cannot. */
struct board *board_create(const char *path, uint64_t keys);
struct board *board_open(const char *path);

/* "name number" a line, to standard output. */
void board_print(const struct board *board);

#endif
