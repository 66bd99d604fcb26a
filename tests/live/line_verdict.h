/* SPDX-License-Identifier: MIT */
/*
 * Reads the record of the contenders (line_contender.h): every two holds of a
 * name that overlap, fencing tokens that do not grow, and for how long a name
 * was idle while somebody waited.
 */
#ifndef NXLOCK_TESTS_LINE_VERDICT_H
#define NXLOCK_TESTS_LINE_VERDICT_H

#include "live/line_contender.h"

static struct hold *all[SLOTS * HOLDS];
static uint64_t idle[SLOTS * HOLDS];

static inline int by_begin(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a;
    const struct hold *y = *(struct hold *const *)b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static inline int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static inline size_t collect(void)
{
    size_t count = 0;
    for (int i = 0; i < SLOTS; i++)
        for (int k = 0; k < board->slot[i].holds; k++) {
            struct hold *hold = &board->slot[i].hold[k];
            if (hold->begin < hold->end) /* else nobody relied on it */
                all[count++] = hold;
        }
    qsort(all, count, sizeof(*all), by_begin);
    return count;
}

struct verdict {
    size_t holds, waited;
    int overlaps, disorder; /* two holders; fencing tokens that do not grow */
    uint64_t idle_most;
};

static inline void overlap(
    struct verdict *v, struct hold *last, struct hold *next)
{
    if (++v->overlaps <= 3)
        print_message("# two holders of %s: slot %d for %.3f ms more when %d "
                      "began, %.3f ms after it\n",
            name_of[next->name], last->slot,
            (double)(last->end - next->begin) / 1e6, next->slot,
            (double)(next->begin - last->begin) / 1e6);
}

static inline struct verdict judge(void)
{
    struct verdict v = {.holds = collect()};
    struct hold *last = NULL; /* that ends last */
    uint64_t fence = 0;
    for (size_t i = 0; i < v.holds; i++) {
        struct hold *next = all[i];
        if (!last || last->name != next->name) {
            last = next;
            fence = next->fence;
            continue;
        }
        if (next->fence && next->fence <= fence)
            v.disorder++;
        fence = next->fence ? next->fence : fence;
        if (next->begin < last->end) {
            overlap(&v, last, next);
        } else if (next->asked < last->end) {
            idle[v.waited++] = next->begin - last->end;
        }
        if (next->end > last->end)
            last = next;
    }
    qsort(idle, v.waited, sizeof(*idle), by_value);
    v.idle_most = v.waited > 0 ? idle[v.waited - 1] / 1000000 : 0;
    return v;
}

#endif
