/* SPDX-License-Identifier: MIT */
/*
 * Passwords that change: a user "app" on all servers of the group, and a client
 * that gets the password from a file or from a callback. Calls are made through
 * the blocking or the event-loop API, as the group says. Every password begins
 * with SECRET, which no message may show.
 */
#ifndef NXLOCK_TESTS_CREDENTIALS_RIG_H
#define NXLOCK_TESTS_CREDENTIALS_RIG_H

#define QUORUM_MAX 3
#include "live/api_rig.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SECRET "s3cret."
/* The brief one is for calls that are to end for their time. */
#define TIMEOUT_MS 600
#define PATIENT_MS 30000

/* The passwords that the callback gives, and what it is to do. */
static struct {
    pthread_mutex_t mutex;
    char user[64], password[8193], next[64]; /* next: from the second call on */
    const char *why;                         /* it fails with this reason */
    bool hangs;                              /* until it is let go */
    unsigned failures;                       /* so many calls fail */
    unsigned servers; /* that it was called for, by bits */
    atomic_uint calls, running, for_sentinels;
    sem_t entered, leave;
} supply = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What the present group runs with. */
static struct {
    bool from_file;
    char path[LOCAL_PATH];
} with;

static inline bool supply_credentials(void *arg, nxl_credentials *c)
{
    assert_ptr_equal(arg, &supply);
    atomic_fetch_add(&supply.running, 1);
    pthread_mutex_lock(&supply.mutex);
    unsigned call = atomic_fetch_add(&supply.calls, 1);
    atomic_fetch_add(&supply.for_sentinels, c->sentinel);
    supply.servers |= 1U << c->server;
    snprintf(c->user, sizeof(c->user), "%s", supply.user);
    snprintf(c->password, sizeof(c->password), "%s",
        call > 0 && supply.next[0] ? supply.next : supply.password);
    bool hangs = supply.hangs;
    bool fails = supply.why && call < supply.failures;
    if (fails)
        snprintf(c->why, sizeof(c->why), "%s", supply.why);
    pthread_mutex_unlock(&supply.mutex);
    if (hangs) {
        sem_post(&supply.entered);
        while (sem_wait(&supply.leave) != 0)
            ;
    }
    atomic_fetch_sub(&supply.running, 1);
    return !fails;
}

/* ------------------------------------------------------------- the source */

static inline void write_bytes(const char *bytes, size_t len, mode_t mode)
{
    char fresh[LOCAL_PATH + 8];
    snprintf(fresh, sizeof(fresh), "%s.new", with.path);
    unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    assert_int_equal(rename(fresh, with.path), 0);
}

/* The source gives this password from now on. */
static inline void source_gives(const char *password)
{
    char line[8300];
    snprintf(line, sizeof(line), "%s\n", password);
    write_bytes(line, strlen(line), 0600);
    pthread_mutex_lock(&supply.mutex);
    snprintf(supply.password, sizeof(supply.password), "%s", password);
    supply.next[0] = '\0';
    atomic_store(&supply.calls, 0);
    pthread_mutex_unlock(&supply.mutex);
}

/* From the second call of the callback on. */
static inline void source_gives_next(const char *password)
{
    pthread_mutex_lock(&supply.mutex);
    snprintf(supply.next, sizeof(supply.next), "%s", password);
    pthread_mutex_unlock(&supply.mutex);
}

/* The callback's own user. */
static inline void source_user(const char *user)
{
    pthread_mutex_lock(&supply.mutex);
    snprintf(supply.user, sizeof(supply.user), "%s", user);
    supply.servers = 0;
    pthread_mutex_unlock(&supply.mutex);
}

/* The callback fails so often, or with NULL not at all. */
static inline void source_fails(const char *why, unsigned times)
{
    pthread_mutex_lock(&supply.mutex);
    supply.why = why;
    supply.failures = times;
    atomic_store(&supply.calls, 0);
    pthread_mutex_unlock(&supply.mutex);
}

static inline void source_hangs(bool hangs)
{
    pthread_mutex_lock(&supply.mutex);
    supply.hangs = hangs;
    pthread_mutex_unlock(&supply.mutex);
}

/* ------------------------------------------------------------ the servers */

/* user is made anew, and its connections are closed. */
static inline void servers_make_user(const char *password)
{
    char word[8300];
    snprintf(word, sizeof(word), ">%s", password);
    for (size_t i = 0; i < on.servers; i++) {
        redis_run(&servers[i], "ACL", "DELUSER", "app", NULL);
        redis_run(&servers[i], "ACL", "SETUSER", "app", "on", word, "~*",
            "+@all", NULL);
    }
}

/* The connections of the user stay open. */
static inline void servers_change_password(const char *password)
{
    char word[128];
    snprintf(word, sizeof(word), ">%s", password);
    for (size_t i = 0; i < on.servers; i++)
        redis_run(
            &servers[i], "ACL", "SETUSER", "app", "resetpass", word, NULL);
}

static inline void servers_close_connections(void)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "CLIENT", "KILL", "USER", "app", NULL);
}

/* Of all servers since they started. */
static inline long long connections_made(void)
{
    long long sum = 0;
    for (size_t i = 0; i < on.servers; i++)
        sum +=
            server_number(&servers[i], "stats", "total_connections_received");
    return sum;
}

static inline bool app_is_on(size_t i)
{
    redisReply *list = redis_command(&servers[i], "CLIENT", "LIST", NULL);
    bool found = list->str && strstr(list->str, "user=app");
    freeReplyObject(list);
    return found;
}

/* --------------------------------------------------------------- fixtures */

static inline int credentials_clean(void **state)
{
    quorum_clean(state);
    sem_init(&supply.entered, 0, 0);
    sem_init(&supply.leave, 0, 0);
    local_path(with.path, servers[0].dir, "password");
    source_user("");
    source_hangs(false);
    source_fails(NULL, 0);
    atomic_store(&supply.for_sentinels, 0);
    source_gives(SECRET "one");
    servers_make_user(SECRET "one");
    return 0;
}

static inline int credentials_mend(void **state)
{
    sem_post(&supply.leave);
    assert_eventually(atomic_load(&supply.running) == 0);
    unlink(with.path);
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "ACL", "DELUSER", "app", NULL);
    return quorum_mend(state);
}

#define credentials_test(function)                                             \
    cmocka_unit_test_setup_teardown(                                           \
        function, credentials_clean, credentials_mend)

/* ---------------------------------------------------------------- clients */

static inline void assert_hidden(const char *text)
{
    if (!strstr(text, SECRET))
        return;
    print_error("it shows a password: \"%s\"\n", text);
    fail();
}

static inline void trace_hides(void *arg, const nxl_trace *trace)
{
    (void)arg;
    assert_hidden(trace->text);
}

#define CREDENTIALS_OPTIONS                                                    \
    {                                                                          \
        .size = sizeof(nxl_client_options), .timeout_ms = PATIENT_MS,          \
        .guard_restarts = NXL_GUARD_OFF, .tracer = trace_hides,                \
        .credentials = supply_credentials, .credentials_arg = &supply          \
    }

/* Of all servers of the group, as user "app". */
static inline nxl_client *app_client_with(int64_t timeout_ms)
{
    nxl_client_options options = CREDENTIALS_OPTIONS;
    char list[URLS_ROOM] = "", parameters[LOCAL_PATH + 64], why[512];
    nxl_client *client;
    snprintf(parameters, sizeof(parameters),
        with.from_file ? "user=app&password_file=%s" : "user=app", with.path);
    if (with.from_file)
        options.credentials = NULL;
    options.timeout_ms = timeout_ms;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    for (size_t i = 0; i < on.servers; i++)
        add_url(list, url_of(i), parameters);
    int rc = nxl_client_new(&client, list, &options);
    live_assert_result(rc, NXL_OK, why, __FILE__, __LINE__);
    return client;
}

static inline nxl_client *app_client(void)
{
    return app_client_with(PATIENT_MS);
}

static inline int acquire(nxl_client *client, nxl_lock *lock, int64_t wait_ms)
{
    int rc = CALL(client, acquire, lock, wait_ms);
    assert_hidden(nxl_lock_errmsg(lock));
    assert_hidden(nxl_client_errmsg(client));
    return rc;
}

static inline int release(nxl_client *client, nxl_lock *lock)
{
    return CALL(client, release, lock);
}

/* It waits, for an acquire over several servers gives each of them a part of
 * the lease, although a connection that was closed meanwhile is made anew in
 * it. */
#define assert_acquired(client, lock)                                          \
    do {                                                                       \
        assert_result(acquire(client, lock, PATIENT_MS), NXL_OK, lock);        \
        assert_result(release(client, lock), NXL_OK, lock);                    \
    } while (0)

/* What happened a moment ago still counts: a connection that was just used is
 * not checked before its next use, and a refusal that has just been confirmed
 * by the callback is believed. */
static inline void look_again(void)
{
    test_pause_ms(8);
}

/* So that the next call finds a connection to each server. */
static inline void connect_app(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "connect", 5000);
    do
        assert_acquired(client, lock);
    while (!connected_to_all(client));
    nxl_lock_free(lock);
}

#endif
