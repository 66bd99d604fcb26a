/* SPDX-License-Identifier: MIT */
/*
 * One call through either API: the blocking one, or the event-loop API up to
 * the event of the operation.
 */
#ifndef NXLOCK_TESTS_LIVE_API_RIG_H
#define NXLOCK_TESTS_LIVE_API_RIG_H

#include "live/quorum_rig.h"

#include <poll.h>

static bool by_loop; /* which API a scene uses at present */

/* One turn of the event loop: as long as the client asks for, or most_ms. */
static inline void turn(nxl_client *client, int64_t most_ms)
{
    struct pollfd fds[8];
    int timeout_ms;
    size_t count = nxl_client_pollfds(client, fds, 8, &timeout_ms);
    assert_between(count, 1, 8);
    if (timeout_ms < 0 || timeout_ms > most_ms)
        timeout_ms = (int)most_ms;
    assert_true(poll(fds, (nfds_t)count, timeout_ms) >= 0);
    assert_int_equal(nxl_client_process(client), NXL_OK);
}

/* The next event, within 30 s. */
static inline nxl_event next_event(nxl_client *client)
{
    nxl_event event;
    int64_t left, end = test_now_ms() + 30000;
    while (!nxl_client_next_event(client, &event)) {
        left = end - test_now_ms();
        assert_true(left > 0);
        turn(client, left);
    }
    return event;
}

/* Begins an operation: BEGIN(extend, lock, 0). The blocking API ends it too. */
#define BEGIN(name, ...)                                                       \
    (by_loop ? nxl_lock_##name##_start(__VA_ARGS__)                            \
             : nxl_lock_##name(__VA_ARGS__))

/* Of what has begun: its own result, or its event's. */
static inline int result_of(nxl_client *client, int rc)
{
    return rc == NXL_PENDING ? next_event(client).result : rc;
}

#define CALL(client, ...) result_of(client, BEGIN(__VA_ARGS__))

static inline int begin_inspect(nxl_lock *lock)
{
    return by_loop ? nxl_lock_inspect_start(lock)
                   : nxl_lock_inspect(lock, NULL);
}

static inline int api_blocking(void **state)
{
    by_loop = false;
    return quorum_clean(state);
}

static inline int api_loop(void **state)
{
    by_loop = true;
    return quorum_clean(state);
}

/* A scene through one API, through the other one, or through each. */
#define api_blocking_test(function)                                            \
    cmocka_unit_test_setup_teardown(function, api_blocking, quorum_mend)
#define api_loop_test(function)                                                \
    {                                                                          \
#function " (event loop)", function, api_loop, quorum_mend, NULL       \
    }
#define api_test(function) api_blocking_test(function), api_loop_test(function)

#endif
