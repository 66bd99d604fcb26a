/* SPDX-License-Identifier: MIT */
/* Locks with options.renew, and what becomes of them. */
#ifndef NXLOCK_TESTS_LIVE_RENEW_RIG_H
#define NXLOCK_TESTS_LIVE_RENEW_RIG_H

#include "live_rig.h"

#include <poll.h>

#define RENEW_MS 600

static inline nxl_lock *kept_lock(
    nxl_client *client, const char *name, const nxl_lock_options *more)
{
    nxl_lock_options options = more ? *more : OPTIONS(.ttl_ms = 0);
    if (!options.ttl_ms)
        options.ttl_ms = RENEW_MS;
    options.renew = 1;
    return live_lock(client, name, &options, __FILE__, __LINE__);
}

/* Another handle, which has taken the lock "k" over and extended it. */
static inline nxl_lock *adopt_from(
    const nxl_lock *owner, nxl_client *theirs, int64_t ttl_ms)
{
    nxl_lock *heir = new_lock(theirs, "k", ttl_ms);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    return heir;
}

/* It still has the lock, and ends it. */
static inline void assert_left_to(nxl_lock *heir)
{
    assert_true(nxl_lock_held(heir));
    assert_value("k", nxl_lock_token(heir));
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    nxl_lock_free(heir);
}

/* Of this process. */
static inline int count_threads(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static inline nxl_stats stats_of(nxl_client *client)
{
    nxl_stats stats;
    assert_int_equal(nxl_client_stats(client, &stats, sizeof(stats)), NXL_OK);
    return stats;
}

/* Fails when the condition does not come true within that time. */
#define comes_true(condition, most_ms)                                         \
    do {                                                                       \
        int64_t renew_end = test_now_ms() + (most_ms);                         \
        while (!(condition) && test_now_ms() < renew_end)                      \
            test_pause_ms(5);                                                  \
        assert_true(condition);                                                \
    } while (0)

/* The next loss of a client of the blocking door, by its descriptor. */
static inline nxl_lock *await_loss(nxl_client *client, int64_t most_ms)
{
    nxl_event event;
    struct pollfd fd = {nxl_client_loss_fd(client), POLLIN, 0};
    assert_true(fd.fd >= 0);
    if (poll(&fd, 1, (int)most_ms) != 1)
        return NULL;
    assert_true(nxl_client_next_event(client, &event));
    assert_int_equal(event.operation, NXL_OP_HOLD);
    assert_int_equal(event.result, NXL_LOST);
    return event.lock;
}

#endif
