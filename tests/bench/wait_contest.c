/* SPDX-License-Identifier: MIT */
/* What contenders record, in the same way for floor and library. */
#include "wait.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* How often a process checks whether it should stop. */
#define LOOK_NS 20000000u

int contest_open(struct contest *contest)
{
    contest->holding = calloc(contest->count, sizeof(*contest->holding));
    return contest->holding ? 0 : contest_fail(contest, "out of memory");
}

void contest_close(struct contest *contest)
{
    free(contest->holding);
}

void contest_wait(struct contest *contest, unsigned contender)
{
    contest->seats[contender].since_ns = bench_now_ns();
}

void contest_granted(struct contest *contest, unsigned contender)
{
    struct wait_shared *shared = contest->shared;
    struct seat *seat = &contest->seats[contender];
    uint64_t now = bench_now_ns();
    uint64_t waited = now - seat->since_ns;
    uint64_t begin = shared->begin_ns;

    if (atomic_fetch_add(&shared->holders, 1) != 0)
        shared->overlaps++;
    seat->since_ns = 0;
    seat->ever++;
    shared->total++;
    if (begin != 0 && now >= begin && now < shared->end_ns) {
        seat->granted++;
        if (waited > seat->longest_ns)
            seat->longest_ns = waited;
        if (shared->released_ns != 0 && now > shared->released_ns)
            histogram_add(&shared->handoff, now - shared->released_ns);
    }
    unsigned at =
        (contest->holding_first + contest->holding_count++) % contest->count;
    contest->holding[at] =
        (struct holding){contender, bench_now_ns() + contest->hold_ns};
}

int contest_due(struct contest *contest)
{
    struct wait_shared *shared = contest->shared;
    struct holding *first = &contest->holding[contest->holding_first];

    if (contest->holding_count == 0 || (shared->pause && !shared->stop) ||
        bench_now_ns() < first->due_ns)
        return -1;
    contest->holding_first = (contest->holding_first + 1) % contest->count;
    contest->holding_count--;
    atomic_fetch_sub(&shared->holders, 1);
    shared->released_ns = bench_now_ns();
    return (int)first->contender;
}

struct timespec contest_sleep(const struct contest *contest, int most_ms)
{
    uint64_t sleep_ns = LOOK_NS;

    if (most_ms >= 0 && (uint64_t)most_ms * 1000000 < sleep_ns)
        sleep_ns = (uint64_t)most_ms * 1000000;
    if (contest->holding_count > 0 && !contest->shared->pause) {
        uint64_t now = bench_now_ns();
        uint64_t due = contest->holding[contest->holding_first].due_ns;

        due = due > now ? due - now : 0;
        sleep_ns = due < sleep_ns ? due : sleep_ns;
    }
    return (struct timespec){0, (long)sleep_ns};
}

void contest_failure(struct contest *contest, const char *words)
{
    struct wait_shared *shared = contest->shared;

    if (shared->failures++ == 0)
        snprintf(shared->failure, sizeof(shared->failure), "%s", words);
}

int contest_fail(struct contest *contest, const char *format, ...)
{
    struct wait_shared *shared = contest->shared;
    va_list args;

    if (!atomic_exchange(&shared->failed, true)) {
        va_start(args, format);
        vsnprintf(shared->error, sizeof(shared->error), format, args);
        va_end(args);
    }
    return -1;
}
