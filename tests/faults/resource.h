/* SPDX-License-Identifier: MIT */
/*
 * What the lock protects: two counters in one SQLite file, one that refuses
 * what comes under an older fencing number than it has seen, and one that
 * takes everything. Whoever adds one reads, works, and writes what it read and
 * one. Each write that is taken is counted in the same transaction, so
 * writes - value is how many additions were lost, whoever died when.
 */
#ifndef NXLOCK_TESTS_FAULTS_RESOURCE_H
#define NXLOCK_TESTS_FAULTS_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct resource;

/* Of a file that has the tables; ends the program when it cannot. */
struct resource *resource_open(const char *path);
void resource_close(struct resource *r);

struct reading {
    uint64_t fence;
    bool fresh; /* no greater number had been seen */
    int64_t checked, plain;
};

/* Shows the number already to read: what is read here stays true until a
 * greater one is shown. */
struct reading resource_read(struct resource *r, uint64_t fence);
/* One more than what was read. The counter with the check takes it or counts
 * a refusal, the other one takes it. */
void resource_write(struct resource *r, const struct reading *reading);

#endif
