/* SPDX-License-Identifier: MIT */
/*
 * What the live tests share: one real server a group, met over TCP and then
 * over its unix socket, or over TLS alone (see support/redis.h), emptied before
 * each test; clients and locks that are made or fail the test; a thread that
 * waits for a lock.
 */
#ifndef NXLOCK_TESTS_LIVE_RIG_H
#define NXLOCK_TESTS_LIVE_RIG_H

#include "support/test.h"

#include <nxlock.h>
#include <pthread.h>

#include "support/redis.h"

/* cmocka hands a state to every scene and fixture; few look at it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#ifdef __has_feature
#define LIVE_FEATURE(name) __has_feature(name)
#else
#define LIVE_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
    LIVE_FEATURE(address_sanitizer) || LIVE_FEATURE(thread_sanitizer) ||       \
    LIVE_FEATURE(undefined_behavior_sanitizer)
#define LIVE_INSTRUMENTED true
#else
#define LIVE_INSTRUMENTED (RUNNING_ON_VALGRIND != 0)
#endif

/* How much later than its deadline a call may return, on a machine that is
 * busy with other tests. */
#define LATE_MS (LIVE_INSTRUMENTED ? 500 : 400)

/* The default drift_ppm takes 1 % and 2 ms off a lease. */
#define DRIFT_NS(ttl_ms)                                                       \
    ((uint64_t)(ttl_ms)*UINT64_C(10000) + UINT64_C(2000000))
#define LEASE_NS(ttl_ms)                                                       \
    ((uint64_t)(ttl_ms)*UINT64_C(1000000) - DRIFT_NS(ttl_ms))

/* For what fails on a busy machine only when something came too late: it has
 * three tries. */
#define assert_in_three_tries(condition)                                       \
    do {                                                                       \
        int live_tries = 3;                                                    \
        while (live_tries > 0 && !(condition))                                 \
            live_tries--;                                                      \
        assert_true(live_tries > 0);                                           \
    } while (0)

static struct redis server;
static const char *server_url; /* by the transport of the present group */

static inline bool live_tls(void)
{
    const char *certificates = getenv("NXLOCK_TEST_TLS");
    return certificates && *certificates != '\0';
}

static inline int live_tcp(void **state)
{
    int rc = redis_start(&server, NULL);
    server_url = server.url;
    return rc;
}

static inline int live_unix(void **state)
{
    int rc = redis_start(&server, NULL);
    server_url = server.unix_url;
    return rc;
}

static inline int live_stop(void **state)
{
    redis_stop(&server);
    return 0;
}

static inline int live_clean(void **state)
{
    if (server.pid == 0)
        redis_restart(&server);
    redis_thaw(&server);
    redis_run(&server, "FLUSHALL", NULL);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    return 0;
}

#define live_test(function) cmocka_unit_test_setup(function, live_clean)

/* What a sanitizer looks at is played over TCP only, for it would find the same
 * over the unix socket. So is what takes long and asks nothing of the transport
 * (brief), unless NXLOCK_FULL is set. */
static inline bool live_tcp_only(bool brief)
{
    return LIVE_INSTRUMENTED || (brief && !getenv("NXLOCK_FULL"));
}

/* All of the array "tests" over TCP and then over the unix socket, or over TLS.
 */
#define live_run_as(name, brief)                                               \
    (live_tls() ? cmocka_run_group_tests_name(                                 \
                      name " (TLS)", tests, live_tcp, live_stop)               \
                : cmocka_run_group_tests_name(                                 \
                      name " (TCP)", tests, live_tcp, live_stop) +             \
                      (live_tcp_only(brief)                                    \
                              ? 0                                              \
                              : cmocka_run_group_tests_name(name " (unix)",    \
                                    tests, live_unix, live_stop)))
#define live_run(name) live_run_as(name, false)
#define live_run_long(name) live_run_as(name, true)

/* ------------------------------------------------------ clients and locks */

static inline void live_assert_result(
    int rc, int expected, const char *message, const char *file, int line)
{
    if (rc == expected)
        return;
    print_error("%s, not %s; it says \"%s\"\n", nxl_strerror(rc),
        nxl_strerror(expected), message);
    _fail(file, line);
}

/* A call on a lock has this result; if not, its message is shown. */
#define assert_result(call, expected, lock)                                    \
    do {                                                                       \
        int live_rc = (call);                                                  \
        live_assert_result(                                                    \
            live_rc, expected, nxl_lock_errmsg(lock), __FILE__, __LINE__);     \
    } while (0)

static inline nxl_client *client_at(const char *url)
{
    nxl_client *client;
    assert_int_equal(nxl_client_new(&client, url, NULL), NXL_OK);
    return client;
}

/* Of the group's server, with URL parameters: "timeout_ms=300", or "". */
static inline nxl_client *new_client(const char *parameters)
{
    char url[512];
    snprintf(url, sizeof(url), "%s%s%s", server_url,
        *parameters != '\0' ? "?" : "", parameters);
    return client_at(url);
}

static inline nxl_lock *live_lock(nxl_client *client, const char *name,
    const nxl_lock_options *options, const char *file, int line)
{
    nxl_lock *lock;
    live_assert_result(nxl_lock_new(&lock, client, name, options), NXL_OK,
        nxl_client_errmsg(client), file, line);
    return lock;
}

/* &OPTIONS(.ttl_ms = 500, .renew = 1), the others as they are by default. */
#define OPTIONS(...)                                                           \
    (nxl_lock_options)                                                         \
    {                                                                          \
        .size = sizeof(nxl_lock_options), __VA_ARGS__                          \
    }
#define lock_with(client, name, ...)                                           \
    live_lock(client, name, &OPTIONS(__VA_ARGS__), __FILE__, __LINE__)

static inline nxl_lock *new_lock(
    nxl_client *client, const char *name, int64_t ttl_ms)
{
    return lock_with(client, name, .ttl_ms = ttl_ms);
}

static inline void end(nxl_lock *lock, nxl_client *client)
{
    nxl_lock_free(lock);
    nxl_client_free(client);
}

/* Another program takes or holds the name. ttl_ms 0: without an end. */
static inline void stranger_sets(
    const char *key, const char *value, int64_t ttl_ms)
{
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)ttl_ms);
    if (ttl_ms > 0)
        redis_run(&server, "SET", key, value, "PX", number, NULL);
    else
        redis_run(&server, "SET", key, value, NULL);
}

/* The message names the server, has its words and says what to do. */
static inline void assert_told(const nxl_lock *lock, const char *url,
    const char *words, const char *remedy)
{
    assert_contains(nxl_lock_errmsg(lock), url);
    assert_contains(nxl_lock_errmsg(lock), words);
    assert_contains(nxl_lock_errmsg(lock), remedy);
}

/* A number of INFO's section, "used_memory". */
static inline long long server_number(
    struct redis *r, const char *section, const char *name)
{
    char field[64];
    redisReply *reply = redis_command(r, "INFO", section, NULL);
    snprintf(field, sizeof(field), "\n%s:", name);
    const char *at = reply->str ? strstr(reply->str, field) : NULL;
    long long number = at ? strtoll(at + strlen(field), NULL, 10) : -1;
    freeReplyObject(reply);
    return number;
}

/* Of this process, kilobytes. */
static inline long resident_kb(void)
{
    char line[128];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (status)
        fclose(status);
    return kb;
}

static inline void assert_value(const char *key, const char *value)
{
    char there[700];
    assert_true(redis_get(&server, key, there, sizeof(there)));
    assert_string_equal(there, value);
}

/* ----------------------------------------------------------------- waiters */

/* One acquire in a thread of its own. Static, for a test that fails leaves
 * its frame while the thread runs. */
struct waiter {
    pthread_t thread;
    nxl_lock *lock;
    int64_t wait_ms;
    int result;
    int64_t began_ms, ended_ms;
};

static inline void *waiter_run(void *argument)
{
    struct waiter *w = argument;
    w->began_ms = test_now_ms();
    w->result = nxl_lock_acquire(w->lock, w->wait_ms);
    w->ended_ms = test_now_ms();
    return NULL;
}

static inline void waiter_start(
    struct waiter *w, nxl_lock *lock, int64_t wait_ms)
{
    *w = (struct waiter){.lock = lock, .wait_ms = wait_ms};
    assert_int_equal(pthread_create(&w->thread, NULL, waiter_run, w), 0);
}

static inline int waiter_join(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->result;
}

#endif
