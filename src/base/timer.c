/* SPDX-License-Identifier: MIT */
/*
 * A heap of timers.
 *
 * Invariant: heap[i].timer->heap_slot == i + 1 for every i < count, no entry's
 * key is earlier than its parent's or later than its timer's time, and count <=
 * owners <= room.
 */
#include "base/timer.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/deadline.h"

bool timers_reserve(struct timers *t)
{
    if (t->owners == t->room) {
        size_t room = t->room == 0 ? 8 : t->room * 2;
        if (room > SIZE_MAX / sizeof(*t->heap))
            return false;
        struct timer_entry *heap = realloc(t->heap, room * sizeof(*heap));
        if (!heap)
            return false;
        t->heap = heap;
        t->room = room;
    }
    t->owners++;
    return true;
}

void timers_free(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){0};
}

static void put(struct timers *t, size_t i, struct timer_entry entry)
{
    t->heap[i] = entry;
    entry.timer->heap_slot = i + 1;
}

/* i is free: finds the place for the entry from there towards the root. */
static void rise(struct timers *t, size_t i, struct timer_entry entry)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (t->heap[parent].key <= entry.key)
            break;
        put(t, i, t->heap[parent]);
        i = parent;
    }
    put(t, i, entry);
}

/* The same towards the leaves. Of two entries with the same key this decides
 * which comes first; the histories of the simulator (tests/guards/README.md)
 * depend on it. */
static void sink(struct timers *t, size_t i, struct timer_entry entry)
{
    for (size_t child; (child = 2 * i + 1) < t->count;) {
        if (child + 1 < t->count && t->heap[child + 1].key < t->heap[child].key)
            child++;
        if (t->heap[child].key >= entry.key)
            break;
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, entry);
}

static void place_entry(struct timers *t, size_t i, struct timer_entry entry)
{
    if (i > 0 && t->heap[(i - 1) / 2].key > entry.key)
        rise(t, i, entry);
    else
        sink(t, i, entry);
}

static bool is_set(const struct timer *timer)
{
    return timer->heap_slot != 0 && timer->at != NEVER;
}

static void take_out(struct timers *t, struct timer *timer)
{
    size_t hole = timer->heap_slot - 1;
    struct timer_entry last = t->heap[--t->count];
    timer->heap_slot = 0;
    if (last.timer != timer)
        place_entry(t, hole, last);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at)
{
    if (at == NEVER) {
        timer_stop(t, timer);
        return;
    }
    t->armed += !is_set(timer);
    timer->at = at;
    if (timer->heap_slot == 0)
        rise(t, t->count++, (struct timer_entry){at, timer});
    else if (at < t->heap[timer->heap_slot - 1].key)
        rise(t, timer->heap_slot - 1, (struct timer_entry){at, timer});
}

void timer_stop(struct timers *t, struct timer *timer)
{
    t->armed -= is_set(timer);
    timer->at = NEVER;
}

void timers_unreserve(struct timers *t, struct timer *timer)
{
    timer_stop(t, timer);
    if (timer->heap_slot != 0)
        take_out(t, timer);
    t->owners--;
}

struct timer *timers_due(struct timers *t, uint64_t now)
{
    while (t->armed > 0 && t->heap[0].key <= now) {
        struct timer *first = t->heap[0].timer;
        if (first->at == NEVER) {
            take_out(t, first);
        } else if (first->at > now) {
            sink(t, 0, (struct timer_entry){first->at, first});
        } else {
            timer_stop(t, first);
            take_out(t, first);
            return first;
        }
    }
    return NULL;
}
