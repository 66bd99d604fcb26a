/* SPDX-License-Identifier: MIT */
/*
 * A binary heap of timers.
 *
 * Invariant: heap[i]->place == i + 1 for every i < count, no timer's key is
 * earlier than its parent's or later than its own time, and count <= owners <=
 * room.
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

void timers_free(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){NULL, 0, 0, 0, 0};
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
        if (t->heap[parent]->key <= timer->key)
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
        if (child + 1 < t->count &&
            t->heap[child + 1]->key < t->heap[child]->key)
            child++;
        if (t->heap[child]->key >= timer->key)
            break;
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, timer);
}

static void place_timer(struct timers *t, size_t i, struct timer *timer)
{
    if (i > 0 && t->heap[(i - 1) / 2]->key > timer->key)
        rise(t, i, timer);
    else
        sink(t, i, timer);
}

static bool is_set(const struct timer *timer)
{
    return timer->place != 0 && timer->at != NEVER;
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at)
{
    if (at == NEVER) {
        timer_stop(t, timer);
        return;
    }
    t->set += !is_set(timer);
    timer->at = at;
    if (timer->place == 0) {
        timer->key = at;
        rise(t, t->count++, timer);
    } else if (at < timer->key) {
        timer->key = at;
        rise(t, timer->place - 1, timer);
    }
}

void timer_stop(struct timers *t, struct timer *timer)
{
    t->set -= is_set(timer);
    timer->at = NEVER;
}

static void take_out(struct timers *t, struct timer *timer)
{
    size_t hole = timer->place - 1;
    struct timer *last = t->heap[--t->count];
    timer->place = 0;
    if (last != timer)
        place_timer(t, hole, last);
}

void timers_unreserve(struct timers *t, struct timer *timer)
{
    timer_stop(t, timer);
    if (timer->place != 0)
        take_out(t, timer);
    t->owners--;
}

uint64_t timers_next(const struct timers *t)
{
    return t->set > 0 ? t->heap[0]->key : NEVER;
}

struct timer *timers_due(struct timers *t, uint64_t now)
{
    while (t->set > 0 && t->heap[0]->key <= now) {
        struct timer *first = t->heap[0];
        if (first->at == NEVER) {
            take_out(t, first);
        } else if (first->at > now) {
            first->key = first->at;
            sink(t, 0, first);
        } else {
            timer_stop(t, first);
            take_out(t, first);
            return first;
        }
    }
    return NULL;
}
