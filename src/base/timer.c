/* SPDX-License-Identifier: MIT */
/*
 * A binary heap of timers.
 *
 * Invariant: heap[i]->place == i + 1 for every i < count, no timer is earlier
 * than its parent, and count <= owners <= room.
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
        struct timer **heap = realloc(t->heap, room * sizeof(*heap));
        if (!heap)
            return false;
        t->heap = heap;
        t->room = room;
    }
    t->owners++;
    return true;
}

void timers_unreserve(struct timers *t)
{
    t->owners--;
}

void timers_free(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){NULL, 0, 0, 0};
}

static void put(struct timers *t, size_t i, struct timer *timer)
{
    t->heap[i] = timer;
    timer->place = i + 1;
}

/* i is free: finds the place for timer from there towards the root. */
static void rise(struct timers *t, size_t i, struct timer *timer)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (t->heap[parent]->at <= timer->at)
            break;
        put(t, i, t->heap[parent]);
        i = parent;
    }
    put(t, i, timer);
}

/* The same towards the leaves. */
static void sink(struct timers *t, size_t i, struct timer *timer)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= t->count)
            break;
        if (child + 1 < t->count && t->heap[child + 1]->at < t->heap[child]->at)
            child++;
        if (t->heap[child]->at >= timer->at)
            break;
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, timer);
}

static void place_timer(struct timers *t, size_t i, struct timer *timer)
{
    if (i > 0 && t->heap[(i - 1) / 2]->at > timer->at)
        rise(t, i, timer);
    else
        sink(t, i, timer);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at)
{
    if (at == NEVER) {
        timer_stop(t, timer);
        return;
    }
    timer->at = at;
    if (timer->place == 0)
        rise(t, t->count++, timer);
    else
        place_timer(t, timer->place - 1, timer);
}

void timer_stop(struct timers *t, struct timer *timer)
{
    if (timer->place == 0)
        return;
    size_t hole = timer->place - 1;
    struct timer *last = t->heap[--t->count];
    timer->place = 0;
    if (last != timer)
        place_timer(t, hole, last);
}

uint64_t timers_next(const struct timers *t)
{
    return t->count > 0 ? t->heap[0]->at : NEVER;
}

struct timer *timers_due(struct timers *t, uint64_t now)
{
    if (t->count == 0 || t->heap[0]->at > now)
        return NULL;
    struct timer *due = t->heap[0];
    timer_stop(t, due);
    return due;
}
