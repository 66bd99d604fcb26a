/* SPDX-License-Identifier: MIT */
/*
 * A heap of timers.
 *
 * Invariant: heap[i].timer->place == i + 1 for every i < count, no entry's key
 * is earlier than its parent's or later than the time of any timer in its ring,
 * and count <= owners <= room. recent[] refers only to timers in the heap, each
 * by the hash of its entry's key.
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
    entry.timer->place = i + 1;
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
 * which comes first; the histories of the simulator (docs/guards.md) depend on
 * it. */
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
    return timer->place != 0 && timer->at != NEVER;
}

/* The place in recent[] of an entry with that key: multiplicative hashing. */
static struct timer **recent(struct timers *t, uint64_t key)
{
    return &t->recent[key * UINT64_C(0x9e3779b97f4a7c15) >>
                      (64 - TIMERS_RECENT_BITS)];
}

/* The timer's entry leaves its key, or goes to another timer. */
static void replace_recent(
    struct timers *t, const struct timer *timer, struct timer *by)
{
    struct timer **found = recent(t, t->heap[timer->place - 1].key);
    if (*found == timer)
        *found = by;
}

static bool shares(const struct timer *timer)
{
    return timer->place != 0 && !list_empty(&timer->same);
}

/* Takes a timer out of its ring. */
static void leave(struct timers *t, struct timer *timer)
{
    if (timer->place != TIMER_JOINED) { /* the next one gets the entry */
        struct timer *next = list_entry(timer->same.next, struct timer, same);
        replace_recent(t, timer, next);
        t->heap[timer->place - 1].timer = next;
        next->place = timer->place;
    }
    list_remove(&timer->same);
    timer->place = 0;
}

static void take_out(struct timers *t, struct timer *timer)
{
    if (shares(timer)) {
        leave(t, timer);
        return;
    }
    replace_recent(t, timer, NULL);
    size_t hole = timer->place - 1;
    struct timer_entry last = t->heap[--t->count];
    timer->place = 0;
    if (last.timer != timer)
        place_entry(t, hole, last);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at)
{
    if (at == NEVER) {
        timer_stop(t, timer);
        return;
    }
    t->set += !is_set(timer);
    timer->at = at;
    if (shares(timer))
        leave(t, timer);
    if (timer->place == 0) {
        list_init(&timer->same);
        rise(t, t->count++, (struct timer_entry){at, timer});
    } else if (at < t->heap[timer->place - 1].key) {
        replace_recent(t, timer, NULL);
        rise(t, timer->place - 1, (struct timer_entry){at, timer});
    }
}

/* Not inlined: only renewals need it, and the function that calls it for them
 * serves every call too. */
__attribute__((noinline)) void timer_join(
    struct timers *t, struct timer *timer, uint64_t at)
{
    struct timer **found = recent(t, at);
    timer_stop(t, timer);
    if (at == NEVER)
        return;
    if (shares(timer))
        leave(t, timer);
    struct timer *other = *found;
    if (timer->place == 0 && other && t->heap[other->place - 1].key == at) {
        t->set++;
        timer->at = at;
        timer->place = TIMER_JOINED;
        list_append(&other->same, &timer->same);
        return;
    }
    timer_set(t, timer, at);
    if (t->heap[timer->place - 1].key == at)
        *found = timer;
}

void timer_stop(struct timers *t, struct timer *timer)
{
    t->set -= is_set(timer);
    timer->at = NEVER;
}

void timers_unreserve(struct timers *t, struct timer *timer)
{
    timer_stop(t, timer);
    if (timer->place != 0)
        take_out(t, timer);
    t->owners--;
}

struct timer *timers_due(struct timers *t, uint64_t now)
{
    while (t->set > 0 && t->heap[0].key <= now) {
        struct timer *first = t->heap[0].timer;
        if (first->at == NEVER) {
            take_out(t, first);
        } else if (first->at > now && shares(first)) {
            timer_set(t, first, first->at);
        } else if (first->at > now) {
            replace_recent(t, first, NULL);
            sink(t, 0, (struct timer_entry){first->at, first});
        } else {
            timer_stop(t, first);
            take_out(t, first);
            return first;
        }
    }
    return NULL;
}
