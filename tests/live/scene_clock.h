/* SPDX-License-Identifier: MIT */
/* Servers whose clock a scene can step: faults/stepped_clock.c is loaded into
 * them, and reads a file how many seconds they are off. */
#ifndef NXLOCK_TESTS_LIVE_SCENE_CLOCK_H
#define NXLOCK_TESTS_LIVE_SCENE_CLOCK_H

#include "live/scene.h"

#include <fcntl.h>
#include <sys/mman.h>

static volatile int64_t *clock_offset_s;
static char clock_path[] = "/tmp/nxlock-clock-XXXXXX";

/* Before the servers are started. */
static inline int prepare_clock(void)
{
    const char *preload = getenv("NXLOCK_TEST_CLOCK");
    if (!preload)
        return test_skip("no NXLOCK_TEST_CLOCK; run it by meson test");
    int fd = mkstemp(clock_path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(*clock_offset_s)), 0);
    void *map = mmap(NULL, sizeof(*clock_offset_s), PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    clock_offset_s = map;
    close(fd);
    setenv("LD_PRELOAD", preload, 1);
    setenv("NXLOCK_CLOCK_FILE", clock_path, 1);
    return 0;
}

static inline void remove_clock(void)
{
    if (clock_offset_s) {
        munmap((void *)clock_offset_s, sizeof(*clock_offset_s));
        unlink(clock_path);
    }
    clock_offset_s = NULL;
}

static inline long long seconds_off(struct redis *r)
{
    redisReply *reply = redis_command(r, "TIME", NULL);
    long long seconds = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return seconds - time(NULL);
}

/* So many seconds ahead of this machine's, or, below 0, behind it. */
static inline void step_clock(struct redis *r, int64_t seconds)
{
    if (!clock_offset_s)
        file_error("\"server clock: can be stepped\" is not in the file");
    *clock_offset_s = seconds;
    assert_eventually(llabs(seconds_off(r) - seconds) <= 1);
}

#endif
