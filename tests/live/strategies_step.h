/* SPDX-License-Identifier: MIT */
/*
 * A verb that is stopped at any of its steps, by a network that passes on one
 * step's commands and one step's answers at a time; and what has to hold when
 * it goes on.
 */
#ifndef NXLOCK_TESTS_LIVE_STRATEGIES_STEP_H
#define NXLOCK_TESTS_LIVE_STRATEGIES_STEP_H

#include "live/strategies_rig.h"
#include "support/proxy.h"

#include <stdatomic.h>

#define KEY "invoice:42"

/* PATIENT: for calls that are to end for another reason than the time. */
#define PATIENT "timeout_ms=30000"

enum { TTL = 20000, STEPS = 12 };

/* TAKE: an acquire of what a dead holder of the scheme of times left. */
enum verb { ACQUIRE, EXTEND, RELEASE, LOOK, TAKE };
#define PAST "1600000000"
enum side { REQUEST, REPLY };

struct op {
    enum verb verb;
    bool learnt; /* the strategies are known */
    /* Where it stops: the server has not got the step's commands, or it has
     * and its answers have not come. */
    unsigned step;
    enum side side;
    /* timeout_ms is short: on a busy machine any call may be too late. */
    bool brief;
    unsigned late; /* how many were, but for the one that is stopped */
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock, *probe;
    pthread_t thread;
    atomic_bool done;
    int result;
};

/* Static, for a test that fails leaves its frame while the thread runs. */
static struct op op;

/* ----------------------------------------------------------------- the call */

static inline int call(enum verb verb, nxl_lock *lock, int64_t ttl_ms)
{
    switch (verb) {
    case ACQUIRE:
    case TAKE:
        return nxl_lock_acquire(lock, 0);
    case EXTEND:
        return nxl_lock_extend(lock, ttl_ms);
    case RELEASE:
        return nxl_lock_release(lock);
    default:
        return look(lock);
    }
}

static inline bool is_late(int rc)
{
    bool late = op.brief && (rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    op.late += late;
    return late;
}

/* Again, while it is too late. A release can not be: what it leaves behind
 * goes away; and an acquire may find what another left, for so long. */
static inline int insist(enum verb verb, nxl_lock *lock, int64_t ttl_ms)
{
    int64_t limit = test_now_ms() + 30000;
    unsigned before = op.late;
    int rc = call(verb, lock, ttl_ms);
    while ((is_late(rc) || (rc == NXL_BUSY && op.late > before)) &&
           test_now_ms() < limit) {
        if (verb == RELEASE)
            return NXL_OK;
        test_pause_ms(1);
        rc = call(verb, lock, ttl_ms);
    }
    return rc;
}

static inline void *run(void *data)
{
    (void)data;
    op.result = call(op.verb, op.lock, 50000);
    atomic_store(&op.done, true);
    return NULL;
}

/* More bytes than so many came that way; false: the call has ended. */
static inline bool came(enum proxy_way way, uint64_t before)
{
    int64_t limit = test_now_ms() + 30000;
    while (proxy_bytes(op.proxy, way) <= before) {
        if (atomic_load(&op.done))
            return false;
        assert_true(test_now_ms() < limit);
        test_pause_ms(1);
    }
    return true;
}

static inline bool reach_step(uint64_t sent)
{
    for (unsigned i = 0;; i++) {
        if (!came(PROXY_UP, sent))
            return false;
        sent = proxy_bytes(op.proxy, PROXY_UP);
        if (i == op.step && op.side == REQUEST)
            return true;
        uint64_t answered = proxy_bytes(op.proxy, PROXY_DOWN);
        proxy_hold(op.proxy, PROXY_DOWN, true);
        proxy_hold(op.proxy, PROXY_UP, false);
        if (!came(PROXY_DOWN, answered))
            return false;
        if (aged) /* which answers commands one by one: not only the first */
            assert_eventually(aged_idle(aged));
        if (i == op.step)
            return true;
        proxy_hold(op.proxy, PROXY_UP, true);
        proxy_hold(op.proxy, PROXY_DOWN, false);
    }
}

/* Begins the verb, and stops it at op.step; false: it has ended before. */
static inline bool stop_at_step(void)
{
    uint64_t sent = proxy_bytes(op.proxy, PROXY_UP);
    proxy_hold(op.proxy, PROXY_UP, true);
    assert_int_equal(pthread_create(&op.thread, NULL, run, NULL), 0);
    return reach_step(sent);
}

static inline void let_all_through(void)
{
    proxy_hold(op.proxy, PROXY_UP, false);
    proxy_hold(op.proxy, PROXY_DOWN, false);
}

/* ------------------------------------------------------------------ the rig */

static inline void learn(void)
{
    if (stamps_here())
        redis_run(&server, "SET", "probe", PAST, NULL);
    assert_result(insist(ACQUIRE, op.probe, 0), NXL_OK, op.probe);
    assert_result(insist(EXTEND, op.probe, 40000), NXL_OK, op.probe);
    assert_result(insist(LOOK, op.probe, 0), NXL_OK, op.probe);
    assert_result(insist(RELEASE, op.probe, 0), NXL_OK, op.probe);
}

static inline void open_op(const char *parameters)
{
    char url[2 * LOCAL_PATH];
    op.proxy = aged ? proxy_start(aged_path(aged), 0) : proxy_to(&server, true);
    snprintf(url, sizeof(url), "%s://%s%s%s", aged ? "redis" : server.scheme,
        here->kind == USER ? "alice:secret@" : "", proxy_address(op.proxy),
        query_here());
    server_url = url;
    op.client = client_here(parameters);
    server_url = here_url;
    op.lock = new_lock(op.client, KEY, TTL);
    op.probe = new_lock(op.client, "probe", TTL);
    op.late = 0;
    if (op.learnt)
        learn();
    if (op.verb == TAKE)
        redis_run(&server, "SET", KEY, PAST, NULL);
    else if (op.verb != ACQUIRE)
        assert_result(insist(ACQUIRE, op.lock, 0), NXL_OK, op.lock);
    atomic_store(&op.done, false);
}

static inline void close_op(void)
{
    nxl_lock_free(op.probe);
    end(op.lock, op.client);
    proxy_stop(op.proxy);
}

/* --------------------------------------------------------- what has to hold */

/* Any call takes along what was left behind. */
static inline bool is_gone(void)
{
    char value[700];
    assert_result(insist(LOOK, op.probe, 0), NXL_FREE, op.probe);
    return !redis_get(&server, KEY, value, sizeof(value)) ||
           (op.verb == TAKE && strcmp(value, PAST) == 0);
}

static inline void assert_released(void)
{
    unsigned before = op.late;
    /* A GETSET that nobody heard of may stand in another one's place: what is
     * there is left to its time then. */
    if (bare_here() && op.verb == EXTEND) {
        int rc = insist(RELEASE, op.lock, 0);
        assert_true(rc == NXL_OK || rc == NXL_LOST);
        redis_run(&server, "DEL", KEY, NULL); /* its time, for the test */
        return;
    }
    assert_result(insist(RELEASE, op.lock, 0), NXL_OK, op.lock);
    if (op.late > before)
        assert_eventually(is_gone());
    assert_false(redis_exists(&server, KEY));
}

static inline void assert_goes_on(void)
{
    if (bare_here() && op.verb == EXTEND) {
        if (nxl_lock_held(op.lock))
            assert_released();
        redis_run(&server, "DEL", KEY, NULL);
    } else if (nxl_lock_held(op.lock)) {
        assert_ours(KEY, op.lock);
        assert_result(insist(EXTEND, op.lock, 60000), NXL_OK, op.lock);
        assert_lasts(KEY, 50001, 60000);
        assert_released();
    }
    assert_eventually(is_gone());
    assert_result(insist(ACQUIRE, op.lock, 0), NXL_OK, op.lock);
    assert_ours(KEY, op.lock);
    assert_lasts(KEY, 1, TTL);
    assert_result(insist(LOOK, op.lock, 0), NXL_OK, op.lock);
    assert_released();
    /* A cleanup in the background may be in a transaction; a call drives it. */
    assert_eventually((look(op.probe), nobody_in_multi()));
}

#endif
