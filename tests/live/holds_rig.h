/* SPDX-License-Identifier: MIT */
/*
 * When whom relied on the lock: [its acquire returned, it called release or
 * its deadline came], on one board in shared memory, by one clock. Whoever
 * relies on it writes that down before it does what ends it, so what stands
 * here of one that was killed is true. One reader finds every two that overlap,
 * as they come and at the end.
 */
#ifndef NXLOCK_TESTS_HOLDS_RIG_H
#define NXLOCK_TESTS_HOLDS_RIG_H

#include <stdatomic.h>
#include <sys/mman.h>

#include "live/live_rig.h"

/* Numbers that a seed repeats (splitmix64). */
static inline uint64_t dice_roll(uint64_t *dice)
{
    uint64_t z = *dice += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int dice_below(uint64_t *dice, int sides)
{
    return (int)(dice_roll(dice) % (uint64_t)sides);
}

enum { HOLDERS = 8, HOLDS = 40000, RESULTS = 8 };

struct hold {
    _Atomic uint64_t begin, end;
    int who;
};

/* Of one contender, whichever process it is by now. */
struct holder_of {
    struct hold hold[HOLDS];
    _Atomic int holds;
    _Atomic int results[RESULTS]; /* of acquire: NXL_OK ..., 7: errors */
    _Atomic int lost;             /* extends and releases that came too late */
};

struct board {
    struct holder_of of[HOLDERS];
    _Atomic int over; /* to be read by the contenders */
};

/* The reader's own: all holds by the time at which they began. */
static struct watch_of {
    struct board *board;
    struct hold *hold[HOLDERS * HOLDS];
    size_t count;
    int taken[HOLDERS];
} holds;

static inline void holds_open(void)
{
    memset(&holds, 0, sizeof(holds));
    holds.board = mmap(NULL, sizeof(*holds.board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(holds.board != MAP_FAILED);
}

static inline void holds_close(void)
{
    if (holds.board)
        munmap(holds.board, sizeof(*holds.board));
    holds.board = NULL;
}

/* ------------------------------------------------------ for the contenders */

static inline void pause_us(int us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

/* end 0: the lease was over before anybody could rely on it. */
static inline struct hold *hold_begins(int who, uint64_t end)
{
    struct holder_of *of = &holds.board->of[who];
    struct hold *hold = &of->hold[of->holds];
    if (of->holds == HOLDS)
        _exit(10);
    hold->who = who;
    hold->end = end;
    hold->begin = test_now_ns();
    of->holds++;
    return hold;
}

static inline void hold_ends(struct hold *hold)
{
    uint64_t now = test_now_ns();
    if (now < hold->end)
        hold->end = now;
}

static inline void count_result(int who, int rc)
{
    holds.board->of[who].results[rc < 0 || rc > 6 ? 7 : rc]++;
}

/* ---------------------------------------------------------- for the reader */

/* The order of reading matters: who has released wrote its end down before
 * the next one could begin, so an end that is read after that is the right
 * one. */
static inline int holds_overlaps(size_t from)
{
    int found = 0;
    struct hold *last = holds.count > from ? holds.hold[from] : NULL;
    for (size_t i = from + 1; i < holds.count; i++) {
        struct hold *next = holds.hold[i];
        uint64_t begin = next->begin;
        if (begin >= next->end)
            continue;
        if (begin < last->end && ++found == 1)
            print_message("# two holders: %d for %.3f ms more when %d began, "
                          "%.3f ms after it\n",
                last->who, (double)(last->end - begin) / 1e6, next->who,
                (double)(begin - last->begin) / 1e6);
        if (next->end > last->end)
            last = next;
    }
    return found;
}

/* Takes in what is new; how many of the recent ones overlap. */
static inline int holds_look(void)
{
    enum { RECENT = 2000 };
    for (int who = 0; who < HOLDERS; who++) {
        struct holder_of *of = &holds.board->of[who];
        for (; holds.taken[who] < of->holds; holds.taken[who]++) {
            struct hold *hold = &of->hold[holds.taken[who]];
            size_t at = holds.count++;
            for (; at > 0 && holds.hold[at - 1]->begin > hold->begin; at--)
                holds.hold[at] = holds.hold[at - 1];
            holds.hold[at] = hold;
        }
    }
    return holds_overlaps(holds.count > RECENT ? holds.count - RECENT : 0);
}

/* Over all. */
static inline int holds_verdict(void)
{
    holds_look();
    return holds_overlaps(0);
}

static inline int holds_result(int rc)
{
    int count = 0;
    for (int who = 0; who < HOLDERS; who++)
        count += holds.board->of[who].results[rc];
    return count;
}

static inline void holds_tell(void)
{
    static const char *const name[RESULTS] = {"granted", "busy", "lost",
        "unknown", "pending", "cancelled", "free", "error"};
    int lost = 0;
    for (int who = 0; who < HOLDERS; who++)
        lost += holds.board->of[who].lost;
    print_message("# %zu holds; acquires:", holds.count);
    for (int rc = 0; rc < RESULTS; rc++)
        if (holds_result(rc) > 0)
            print_message(" %s %d", name[rc], holds_result(rc));
    print_message("; %d extends and releases too late\n", lost);
}

#endif
