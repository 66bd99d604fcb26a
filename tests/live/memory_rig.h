/* SPDX-License-Identifier: MIT */
/*
 * Scenes in which memory runs out at every place in turn, once or for good,
 * over one server or three: what each call may say then, and what has to be so
 * afterwards. Each is played twice: a block of memory that the second time
 * leaves behind is left each time, so it is a leak.
 */
#ifndef NXLOCK_TESTS_LIVE_MEMORY_RIG_H
#define NXLOCK_TESTS_LIVE_MEMORY_RIG_H

#ifndef QUORUM_MAX
#define QUORUM_MAX 3
#endif
#include "live/quorum_rig.h"
#include "live/renew_rig.h"

#include "support/alloc.h"

#define PLACES_MAX 500

enum { LEASE_MS = 30000 };

/* The n-th allocation fails, or that one and all after it. */
static bool for_good;
static bool failed; /* one of them did */

static inline void fail_at(unsigned n)
{
    assert_true(n < PLACES_MAX); /* it does end some time */
    if (for_good)
        alloc_fail_from(n);
    else
        alloc_fail_at(n);
}

static inline void fail_no_more(void)
{
    failed = alloc_stop();
}

/* "for (unsigned n = first_place(); failed; n++)": up to the first time that
 * nothing failed between fail_at(n) and fail_no_more(). */
static inline unsigned first_place(void)
{
    failed = true;
    return 1;
}

struct scene {
    void (*play)(void **);
    bool for_good;
    const void *row; /* what it is given as its state */
};

static inline int scene_setup(void **state)
{
    const struct scene *scene = *state;
    if (!alloc_counts())
        return test_skip("a sanitizer has the allocator");
    for_good = scene->for_good;
    return quorum_clean(state);
}

static inline void scene_play(void **state)
{
    const struct scene *scene = *state;
    void *row = (void *)scene->row;
    scene->play(&row);
    long blocks = alloc_blocks();
    scene->play(&row);
    /* A thread that was told to end, or a proxy's, may still be at it. */
    assert_eventually(alloc_blocks() <= blocks);
}

#define memory_scene(f, words, ...)                                            \
    {                                                                          \
        words, scene_play, scene_setup, quorum_mend, &(struct scene)           \
        {                                                                      \
            .play = f, __VA_ARGS__                                             \
        }                                                                      \
    }
#define memory_once(f) memory_scene(f, #f " (once)", .for_good = false)
#define memory_test(f)                                                         \
    memory_once(f), memory_scene(f, #f " (for good)", .for_good = true)

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

/* Of several servers it may also be that one did not answer for it. */
static inline void assert_failed(int rc, const nxl_lock *lock)
{
    if (rc == NXL_UNKNOWN && on.servers > 1)
        assert_contains(nxl_lock_errmsg(lock), "emory");
    else
        assert_out_of_memory(rc, nxl_lock_errmsg(lock));
}

/* One failure costs one server at most. */
static inline bool may_fail(void)
{
    return for_good || on.servers == 1;
}

static inline nxl_client *client_within(int timeout_ms)
{
    char parameters[64];
    snprintf(
        parameters, sizeof(parameters), NO_GUARD "&timeout_ms=%d", timeout_ms);
    return client_on(parameters);
}

static inline int usual_ms(void)
{
    return on.servers > 1 ? 1000 : 500;
}

static inline nxl_client *usual_client(void)
{
    return client_within(usual_ms());
}

static inline nxl_lock *plain_lock(nxl_client *client)
{
    return new_lock(client, "k", LEASE_MS);
}

static inline nxl_lock *kept_for(nxl_client *client, int64_t ttl_ms)
{
    return lock_with(client, "k", .ttl_ms = ttl_ms, .renew = 1);
}

/* Afterwards the same handle works, and nothing is in its way: what is owed is
 * paid at the next call, long before the lease's end. */
static inline void assert_works(nxl_lock *lock, nxl_client *client)
{
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_true(standing(on.servers, "k", lock) >= majority());
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually((connect_most(client), keys_at(on.servers, "k") == 0));
}

#endif
