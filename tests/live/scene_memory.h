/* SPDX-License-Identifier: MIT */
/*
 * Memory that fails in one step of a scene, "where it fails: STEP", and only in
 * the library's own calls there: what a server is asked for a step afterwards
 * has memory again.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_MEMORY_H
#define NXLOCK_TESTS_LIVE_SCENE_MEMORY_H

#include "live/scene.h"
#include "support/alloc.h"

static struct {
    unsigned place; /* which allocation fails, from 1 on; 0: none */
    bool for_good;  /* and all after it */
    bool failing;   /* now */
    bool failed;    /* since memory_begins() */
} memory;

/* That allocation is to fail in the step which memory_fails() begins. */
static inline void memory_begins(unsigned place, bool for_good)
{
    memory.place = place;
    memory.for_good = for_good;
    memory.failed = false;
}

static inline void memory_fails(void)
{
    if (memory.place == 0)
        file_error("it is not under \"memory fails once at each place\"");
    memory.failing = true;
    if (memory.for_good)
        alloc_fail_from(memory.place);
    else
        alloc_fail_at(memory.place);
}

static inline void memory_returns(void)
{
    if (memory.failing)
        memory.failed |= alloc_stop();
    memory.failing = false;
}

/* What a call may say when this machine has no memory: that, or that it did
 * not get to the server for it; of several servers also that some have not
 * answered. */
static inline bool is_out_of_memory(const char *result, const char *message)
{
    static const char *const results[] = {
        "E_NOMEM", "E_SYSTEM", "E_UNREACHABLE", "UNKNOWN"};
    bool known = false;
    for (size_t i = 0; i < (on.servers > 1 ? 4 : 3); i++)
        known |= !strcmp(result, results[i]);
    return known && memory.failed && strstr(message, "emory");
}

#endif
