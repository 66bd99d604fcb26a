/* SPDX-License-Identifier: MIT */
/*
 * An event loop around one client, by either way to wait: the descriptors and
 * time-out of nxl_client_pollfds(), or nxl_client_fd() and nothing else. It
 * keeps the events it has taken.
 */
#ifndef NXLOCK_TESTS_LIVE_LOOP_RIG_H
#define NXLOCK_TESTS_LIVE_LOOP_RIG_H

#include "live_rig.h"

#include <poll.h>

#define LOOP_EVENTS 2048

static struct {
    nxl_event event[LOOP_EVENTS];
    size_t count;
    unsigned turns;
    bool by_fd;
    nxl_client *client; /* whose descriptor it is, for life */
    int fd;
} loop;

/* Of several servers (live/quorum_rig.h, included before) all are emptied. */
#ifdef NXLOCK_TESTS_QUORUM_RIG_H
#define loop_clean quorum_clean
#define loop_mend quorum_mend
#else
#define loop_clean live_clean
#define loop_mend NULL
#endif

static inline void loop_reset(bool by_fd)
{
    memset(&loop, 0, sizeof(loop));
    loop.by_fd = by_fd;
}

static inline int loop_by_pollfds(void **state)
{
    loop_reset(false);
    return loop_clean(state);
}

static inline int loop_by_fd(void **state)
{
    loop_reset(true);
    return loop_clean(state);
}

/* A test by one way to wait, and by the other. */
#define loop_test_poll(f)                                                      \
    {                                                                          \
#f " (pollfds)", f, loop_by_pollfds, loop_mend, NULL                   \
    }
#define loop_test_fd(f)                                                        \
    {                                                                          \
#f " (fd)", f, loop_by_fd, loop_mend, NULL                             \
    }
#define loop_test(f) loop_test_poll(f), loop_test_fd(f)

/* Asked for once: asking again would do what only process should have to. */
static inline int loop_fd_of(nxl_client *client)
{
    if (loop.client != client) {
        loop.client = client;
        loop.fd = nxl_client_fd(client);
        assert_true(loop.fd >= 0);
    }
    return loop.fd;
}

/* Waits for at most so long, and processes if it is said to be time for it.
 * false: it is not. */
static inline bool loop_wait(nxl_client *client, int64_t most_ms)
{
    struct pollfd fds[4];
    int timeout = -1;
    size_t count = 1;

    if (loop.by_fd) {
        fds[0] = (struct pollfd){loop_fd_of(client), POLLIN, 0};
    } else {
        count = nxl_client_pollfds(client, fds, 4, &timeout);
        assert_between(count, 1, 4);
    }
    bool own = timeout >= 0 && timeout <= most_ms; /* the client's time-out */
    int n = poll(fds, (nfds_t)count, own ? timeout : (int)most_ms);
    assert_true(n >= 0);
    if (n == 0 && !own)
        return false;
    loop.turns++;
    assert_int_equal(nxl_client_process(client), NXL_OK);
    return true;
}

static inline void loop_take(nxl_client *client)
{
    assert_true(loop.count < LOOP_EVENTS);
    while (nxl_client_next_event(client, &loop.event[loop.count]))
        loop.count++;
}

/* Runs for that long. */
static inline void loop_for(nxl_client *client, int64_t ms)
{
    int64_t end = test_now_ms() + ms, left;
    while ((left = end - test_now_ms()) > 0) {
        loop_wait(client, left);
        loop_take(client);
    }
}

/* Runs until so many events have been taken in all, for 30 s at most. */
static inline void loop_until(nxl_client *client, size_t count)
{
    int64_t end = test_now_ms() + 30000, left;
    loop_take(client);
    while (loop.count < count) {
        left = end - test_now_ms();
        if (left <= 0) {
            print_error("%zu events, not %zu\n", loop.count, count);
            fail();
        }
        loop_wait(client, left);
        loop_take(client);
    }
    assert_int_equal(loop.count, count);
}

/* Runs until the condition holds, looking at it every 20 ms. Unlike a loop
 * that turns all the time, it only comes when it is called for. */
#define loop_until_true(client, condition)                                     \
    do {                                                                       \
        int64_t loop_end = test_now_ms() + 30000;                              \
        while (!(condition)) {                                                 \
            if (test_now_ms() > loop_end) {                                    \
                print_error("never came true: %s\n", #condition);              \
                _fail(__FILE__, __LINE__);                                     \
            }                                                                  \
            loop_wait(client, 20);                                             \
        }                                                                      \
    } while (0)

static inline void loop_check(
    const nxl_event *event, const nxl_lock *lock, int operation, int result)
{
    assert_ptr_equal(event->lock, lock);
    assert_int_equal(event->operation, operation);
    live_assert_result(event->result, result, nxl_lock_errmsg(event->lock),
        __FILE__, __LINE__);
}

/* The next event is this one. */
#define assert_event(client, lock, operation, result)                          \
    do {                                                                       \
        loop_until(client, loop.count + 1);                                    \
        loop_check(&loop.event[loop.count - 1], lock, operation, result);      \
    } while (0)

#endif
