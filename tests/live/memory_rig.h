/* SPDX-License-Identifier: MIT */
/*
 * Scenes in which memory runs out at every place in turn, once or for good.
 * Each is played twice: a block of memory that the second time leaves behind
 * is left each time, so it is a leak.
 */
#ifndef NXLOCK_TESTS_LIVE_MEMORY_RIG_H
#define NXLOCK_TESTS_LIVE_MEMORY_RIG_H

#include "live_rig.h"

#include "support/alloc.h"

#define PLACES_MOST 500

/* The n-th allocation fails, or that one and all after it. */
static bool for_good;

static inline void fail_at(unsigned n)
{
    assert_true(n < PLACES_MOST); /* it does end some time */
    if (for_good)
        alloc_fail_from(n);
    else
        alloc_fail_at(n);
}

struct scene {
    void (*play)(void **);
    int (*clean)(void **);
    bool for_good;
};

static inline int scene_setup(void **state)
{
    const struct scene *scene = *state;
    if (!alloc_counts())
        return test_skip("a sanitizer has the allocator");
    for_good = scene->for_good;
    return scene->clean(state);
}

static inline void scene_play(void **state)
{
    const struct scene *scene = *state;
    scene->play(state);
    long blocks = alloc_blocks();
    scene->play(state);
    /* A thread that was told to end, or a proxy's, may still be at it. */
    assert_eventually(alloc_blocks() <= blocks);
}

#define memory_once(f, words, clean, teardown)                                 \
    {                                                                          \
        words, scene_play, scene_setup, teardown,                              \
            &(struct scene){f, clean, false}                                   \
    }
#define memory_scene(f, clean, teardown)                                       \
    memory_once(f, #f " (once)", clean, teardown),                             \
    {                                                                          \
#f " (for good)", scene_play, scene_setup, teardown,                   \
            &(struct scene){f, clean, true}                                    \
    }

/* What a call may say when this machine has no memory: that, or that it did
 * not get to the server for it. */
static inline void assert_out_of_memory(int rc, const char *message)
{
    if (rc != NXL_E_NOMEM && rc != NXL_E_SYSTEM && rc != NXL_E_UNREACHABLE) {
        print_error("%s, \"%s\"\n", nxl_strerror(rc), message);
        fail();
    }
    assert_contains(message, "emory");
}

/* A client of these URLs is made whole, of more than so many pieces, or not at
 * all. */
static inline void makes_a_client_or_none(const char *urls, unsigned pieces)
{
    char why[200];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    options.prefix = "given:";
    for (unsigned n = 1;; n++) {
        nxl_client *client = (nxl_client *)why;
        strcpy(why, "");
        fail_at(n);
        int rc = nxl_client_new(&client, urls, &options);
        if (!alloc_stop()) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > pieces);
            nxl_client_free(client);
            return;
        }
        assert_null(client);
        assert_out_of_memory(rc, why);
    }
}

#endif
