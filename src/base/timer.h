/* SPDX-License-Identifier: MIT */
/*
 * Timers in a binary heap, the earliest first. The owner of a timer reserves
 * its place when it is created (timers_reserve), so that setting a timer never
 * allocates and never fails.
 */
#ifndef NXLOCK_BASE_TIMER_H
#define NXLOCK_BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t at;
    size_t place; /* index in the heap + 1; 0: not set */
};

struct timers {
    struct timer **heap;
    size_t count, room, owners;
};

/* Reserves a place for one more owner, who sets at most one timer. False: out
 * of memory. */
bool timers_reserve(struct timers *t);
void timers_unreserve(struct timers *t);
void timers_free(struct timers *t);

/* Sets or moves the timer; NEVER stops it. */
void timer_set(struct timers *t, struct timer *timer, uint64_t at);
void timer_stop(struct timers *t, struct timer *timer);

uint64_t timers_next(const struct timers *t); /* NEVER when none is set */
/* Takes out and returns one that is due at now; NULL when none is. */
struct timer *timers_due(struct timers *t, uint64_t now);

#endif
