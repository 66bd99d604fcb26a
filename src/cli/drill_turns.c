/* SPDX-License-Identifier: MIT */
/* Processes of the drill that take turns with its lock. */
#include "cli/drill_scene.h"

#include <stdlib.h>

#define ROUNDS 60
#define TURNS_MS 4000
#define WAIT_MS 20000

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

struct turns {
    uint64_t released;     /* when the last release was ordered; 0: none was */
    uint64_t gaps[ROUNDS]; /* from a release to the next grant */
    size_t gap_count;
    unsigned granted;
    bool end;
};

/* Gives a process its next order, after its answer. False: the scene is over.
 */
static bool give_next_order(struct drill *d, struct turns *turns, unsigned who,
    const struct drill_answer *answer, unsigned *busy)
{
    if (answer->act == ACT_RELEASE) {
        /* It may fail: the server was too slow for the lease. */
        turns->released = answer->before;
        if (!turns->end)
            return drill_send(d, who, ACT_ACQUIRE, WAIT_MS);
        *busy &= ~ONE(who);
        return true;
    }
    if (answer->result == NXL_OK) {
        turns->granted++;
        if (turns->released != 0 && turns->gap_count < ROUNDS &&
            answer->after > turns->released)
            turns->gaps[turns->gap_count++] = answer->after - turns->released;
        return drill_send(d, who, ACT_RELEASE, 0);
    }
    if (answer->result == NXL_LOST) /* granted, but too late */
        return drill_send(d, who, ACT_ACQUIRE, WAIT_MS);
    drill_failed(d, "acquire", answer);
    return false;
}

/* Before anybody waits: is the server there, and may we use it? */
static bool server_answers(struct drill *d)
{
    struct drill_answer answer;

    if (!drill_ask(d, FIRST, ACT_ACQUIRE, 0, &answer))
        return false;
    if (answer.result == NXL_LOST) /* granted, but too late */
        drill_failed(d, "acquire", &answer);
    else if (answer.result != NXL_OK)
        drill_error(d, "acquire", &answer);
    return !d->over && drill_ask(d, FIRST, ACT_RELEASE, 0, &answer);
}

void scene_turns(struct drill *d)
{
    struct turns turns = {0};
    struct drill_answer answer = {0};
    unsigned who, busy = ALL_ACTORS;
    uint64_t began, end;
    char took[DURATION_ROOM], gap[DURATION_ROOM];

    if (!drill_start_all(d, 0) || !server_answers(d))
        return;
    began = nxl_now_ns();
    end = began + TURNS_MS * NS_PER_MS;
    for (who = 0; who < ACTORS; who++)
        drill_send(d, who, ACT_ACQUIRE, WAIT_MS);
    while (busy != 0 && drill_receive(d, busy, NEVER, &who, &answer)) {
        turns.end = turns.granted >= ROUNDS || nxl_now_ns() >= end;
        if (!give_next_order(d, &turns, who, &answer, &busy))
            return;
    }
    qsort(turns.gaps, turns.gap_count, sizeof(turns.gaps[0]), by_size);
    uint64_t median = turns.gap_count > 0 ? turns.gaps[turns.gap_count / 2] : 0;
    scene_shown(d,
        "%d processes held the lock %u times in %s, never two at once, with "
        "growing fencing tokens; they waited %s, and the next process got the "
        "lock %s after a release (median)",
        ACTORS, turns.granted, drill_time(took, began, nxl_now_ns()),
        answer.waiting, drill_time(gap, 0, median));
}
