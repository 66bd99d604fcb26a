/* SPDX-License-Identifier: MIT */
/*
 * N real servers, started once for a group and emptied before each test;
 * clients of the first so many of them. A group of scenes may be run on one
 * server and on several. The servers are young, so clients are made without
 * the restart guard unless a test is about it.
 */
#ifndef NXLOCK_TESTS_QUORUM_RIG_H
#define NXLOCK_TESTS_QUORUM_RIG_H

#include "live/live_rig.h"
#include "support/proxy.h"

#ifndef QUORUM_MAX
#define QUORUM_MAX 7
#endif
#define URLS_ROOM (16 * (LOCAL_PATH + 128))
#define NO_GUARD "guard_restarts=off"

static struct redis servers[QUORUM_MAX];
static struct proxy *proxies[QUORUM_MAX];

/* What the present group runs on. */
static struct {
    size_t servers;
    bool tcp; /* to the first one; the transports take turns */
} on = {.servers = QUORUM_MAX};

static inline int quorum_start(void **state)
{
    for (size_t i = 0; i < on.servers; i++)
        if (redis_start(&servers[i], NULL) != 0)
            return -1;
    return 0;
}

static inline int quorum_stop(void **state)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_stop(&servers[i]);
    return 0;
}

/* A server that was stopped may have commands of clients that are gone, and of
 * some that it has not accepted yet: it reads them before the second reply. */
static inline int quorum_clean(void **state)
{
    for (size_t i = 0; i < on.servers; i++) {
        redis_run(&servers[i], "PING", NULL);
        redis_run(&servers[i], "PING", NULL);
        redis_run(&servers[i], "FLUSHALL", NULL);
        redis_run(&servers[i], "CONFIG", "RESETSTAT", NULL);
    }
    return 0;
}

static inline int quorum_mend(void **state)
{
    for (size_t i = 0; i < on.servers; i++) {
        proxy_stop(proxies[i]);
        proxies[i] = NULL;
        if (servers[i].pid == 0)
            redis_restart(&servers[i]);
        redis_thaw(&servers[i]);
    }
    return 0;
}

static inline int on_one_tcp(void **state)
{
    on.servers = 1;
    on.tcp = true;
    return quorum_start(state);
}

static inline int on_one_unix(void **state)
{
    on.servers = 1;
    on.tcp = false;
    return quorum_start(state);
}

static inline int on_three(void **state)
{
    on.servers = 3;
    on.tcp = false;
    return quorum_start(state);
}

#define quorum_test(function)                                                  \
    cmocka_unit_test_setup_teardown(function, quorum_clean, quorum_mend)
#define quorum_run(name)                                                       \
    cmocka_run_group_tests_name(name, tests, quorum_start, quorum_stop)
/* Over TLS the one server is the same for one_tcp and one_unix. */
#define on_run(setting, name, tests)                                           \
    (live_tls() && on_##setting == on_one_tcp                                  \
            ? 0                                                                \
            : cmocka_run_group_tests_name(                                     \
                  name, tests, on_##setting, quorum_stop))
/* All of the array on one server, over its unix socket or TLS, and on three. */
#define on_one_and_three_run(name, tests)                                      \
    (on_run(one_unix, name " (one server)", tests) +                           \
        on_run(three, name " (three servers)", tests))
/* The same, before that on one server over TCP. */
#define on_each_run(name, tests)                                               \
    (on_run(one_tcp, name " (one server, TCP)", tests) +                       \
        on_one_and_three_run(name, tests))

/* Adds one URL with parameters ("" for none) to the list. */
static inline void add_url(char *list, const char *url, const char *parameters)
{
    size_t len = strlen(list);
    assert_true(len + strlen(url) + strlen(parameters) + 3 < URLS_ROOM);
    snprintf(list + len, URLS_ROOM - len, "%s%s%s%s", len ? "," : "", url,
        *parameters ? "?" : "", parameters);
}

static inline const char *url_of(size_t i)
{
    return i % 2 != on.tcp ? servers[i].url : servers[i].unix_url;
}

/* Of the first count servers, every URL with these parameters. */
static inline nxl_client *quorum_client(size_t count, const char *parameters)
{
    char list[URLS_ROOM] = "";
    for (size_t i = 0; i < count; i++)
        add_url(list, url_of(i), parameters);
    return client_at(list);
}

/* The same behind a proxy each. */
static inline nxl_client *proxied_client(size_t count, const char *parameters)
{
    char list[URLS_ROOM] = "";
    for (size_t i = 0; i < count; i++) {
        if (!proxies[i])
            proxies[i] = proxy_to(&servers[i], false);
        add_url(list,
            on.tcp ? proxy_tcp_url(proxies[i]) : proxy_url(proxies[i]),
            parameters);
    }
    return client_at(list);
}

/* Of all that the group runs on. */
static inline nxl_client *client_on(const char *parameters)
{
    return quorum_client(on.servers, parameters);
}

static inline size_t majority(void)
{
    return on.servers / 2 + 1;
}

/* A call that finds the connections good, or makes them: those of a majority,
 * for it awaits no more. */
static inline void connect_most(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "connect", 1000);
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    (void)rc;
    nxl_lock_free(lock);
}

/* To how many of its servers it is. */
static inline size_t count_connected(nxl_client *client)
{
    char text[8192];
    size_t found = 0;
    nxl_client_describe(client, text, sizeof(text));
    for (const char *at = text; (at = strstr(at, ", connected")); at++)
        found++;
    return found;
}

static inline bool connected_to_all(nxl_client *client)
{
    return count_connected(client) == nxl_client_servers(client);
}

/* So that the next request goes to all of them at once. */
static inline void connect_all(nxl_client *client)
{
    assert_eventually((connect_most(client), connected_to_all(client)));
}

static inline bool stands_at(size_t i, const char *key, const nxl_lock *lock)
{
    char value[512];
    return redis_get(&servers[i], key, value, sizeof(value)) &&
           strcmp(value, nxl_lock_token(lock)) == 0;
}

/* At how many of the first count. */
static inline size_t standing(
    size_t count, const char *key, const nxl_lock *lock)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += stands_at(i, key, lock);
    return found;
}

static inline size_t keys_at(size_t count, const char *key)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += redis_exists(&servers[i], key);
    return found;
}

/* How often a command ran, at all of them together. */
static inline long calls_at_all(const char *command)
{
    long count = 0;
    for (size_t i = 0; i < on.servers; i++)
        count += redis_calls(&servers[i], command);
    return count;
}

#endif
