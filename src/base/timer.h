/* SPDX-License-Identifier: MIT */
/*
 * Timers in a binary heap, the earliest first. The owner of a timer reserves
 * its place when it is created (timers_reserve), so that setting a timer never
 * allocates and never fails.
 *
 * With many timers nearly all of the time goes into waiting for memory. So the
 * heap compares times without looking at the timers.
 *
 * Most timers guard a call that ends long before its deadline, and are set
 * again at once for the next call. So a timer that is stopped or set to a later
 * time stays where it is in the heap, and is moved when its old time has come.
 */
#ifndef NXLOCK_BASE_TIMER_H
#define NXLOCK_BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/deadline.h"

struct timer {
    uint64_t at;      /* when it is due; only valid if heap_slot is not 0 */
    size_t heap_slot; /* index in the heap + 1; 0: not there */
};

struct timers {
    struct timer_entry {
        uint64_t key; /* its order in the heap: timer->at, or earlier */
        struct timer *timer;
    } * heap;
    size_t count, room, owners;
    size_t armed; /* those of the heap that are not stopped */
};

/* Reserves a place for one more owner, who sets at most one timer. False: out
 * of memory. */
bool timers_reserve(struct timers *t);
/* That owner ends; its timer is stopped, and may be freed. */
void timers_unreserve(struct timers *t, struct timer *timer);
void timers_free(struct timers *t);

/* Sets or moves the timer; NEVER stops it. */
void timer_set(struct timers *t, struct timer *timer, uint64_t at);
void timer_stop(struct timers *t, struct timer *timer);

/* No timer is due earlier; NEVER when none is set. It may be too
 * early, where a timer was moved to a later time: then timers_due() has none.
 */
static inline uint64_t timers_next(const struct timers *t)
{
    return t->armed > 0 ? t->heap[0].key : NEVER;
}
/* Stops and returns one that is due at now; NULL when none is. */
struct timer *timers_due(struct timers *t, uint64_t now);

#endif
