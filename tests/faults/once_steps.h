/* SPDX-License-Identifier: MIT */
/*
 * Where a worker dies or stops, as its seed says: between two calls, or in
 * the middle of one.
 */
#ifndef NXLOCK_TESTS_FAULTS_ONCE_STEPS_H
#define NXLOCK_TESTS_FAULTS_ONCE_STEPS_H

#include <stdint.h>

/* one_in: how many steps go well for one that does not; 0: all of them.
 * stopped is counted up before each SIGSTOP. */
void steps_start(uint64_t seed, int one_in, _Atomic uint64_t *stopped);

/* A number from 0 on that the seed repeats. */
int below(int sides);

/* Between two calls: SIGKILL, SIGSTOP, or nothing. */
void step(void);
/* Around a call: SIGKILL or SIGSTOP within it, if it takes long enough. */
void step_into(void);
void step_out(void);

#endif
