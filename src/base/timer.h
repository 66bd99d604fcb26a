/* SPDX-License-Identifier: MIT */
/*
 * Many deadlines, the earliest at hand: a binary heap of intrusive timers.
 * Room is made when a timer's owner is made (timers_reserve), so that setting
 * one never allocates and never fails.
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

/* One more owner, who will set at most one timer; false: no memory. */
bool timers_reserve(struct timers *t);
void timers_unreserve(struct timers *t);
void timers_free(struct timers *t);

/* Sets or moves; at == NEVER takes it out. */
void timer_set(struct timers *t, struct timer *timer, uint64_t at);
void timer_stop(struct timers *t, struct timer *timer);

uint64_t timers_next(const struct timers *t); /* NEVER when none is set */
/* Takes out and returns one that is due at now; NULL when none is. */
struct timer *timers_due(struct timers *t, uint64_t now);

#endif
