/* SPDX-License-Identifier: MIT */
/*
 * The servers on which the strategies are used: real ones that refuse scripts
 * in several ways, and others that imitate older versions. A group of
 * tests runs on each. Which strategy a verb used is read from the server's own
 * counters, or from the log of the proxy that imitates another version. At the
 * end of each test it is checked that no DEL of a lock was sent outside a
 * script or a transaction (except where there is no WATCH).
 */
#ifndef NXLOCK_TESTS_LIVE_STRATEGIES_RIG_H
#define NXLOCK_TESTS_LIVE_STRATEGIES_RIG_H

#include "live/live_rig.h"
#include "support/aged.h"
#include "wire/timestamps/timestamps.h"

enum way {
    BY_SET,
    BY_SCRIPT,
    BY_WATCH,
    BY_READ,  /* GETRANGE, EXISTS, and PTTL or TTL */
    BY_STAMP, /* SETNX of a unix time, and GETRANGE */
    BY_BARE,  /* GETRANGE, and GETSET or DEL, one by one */
    WAYS
};

struct place {
    const char *name;
    enum { DIRECT, USER, RENAMED, AGED } kind;
    enum aged_profile age;
    /* AGED: commands that are refused there, and how. USER: rights. */
    const char *without, *words;
    enum way acquire, extend, release, inspect;
};

/* The name, kind, version, what is refused and how; how each verb is sent. */
static const struct place places[] = {
    {"7.0", DIRECT, AGED_PLAIN, NULL, NULL, BY_SET, BY_SCRIPT, BY_SCRIPT,
        BY_SCRIPT},
    {"7.0, user without @scripting", USER, AGED_PLAIN, "-@scripting", NULL,
        BY_SET, BY_WATCH, BY_WATCH, BY_READ},
    {"7.0, scripts renamed away", RENAMED, AGED_PLAIN, NULL, NULL, BY_SET,
        BY_WATCH, BY_WATCH, BY_READ},
    {"2.6.9", AGED, AGED_2_6, NULL, NULL, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT,
        BY_SCRIPT},
    {"6.2", AGED, AGED_6_2, NULL, NULL, BY_SET, BY_SCRIPT, BY_SCRIPT,
        BY_SCRIPT},
    {"6.2, no right to scripts", AGED, AGED_6_2, "EVAL EVALSHA SCRIPT",
        AGED_NOPERM, BY_SET, BY_WATCH, BY_WATCH, BY_READ},
    {"2.2, no GETRANGE", AGED, AGED_2_2, "GETRANGE", AGED_UNKNOWN, BY_STAMP,
        BY_WATCH, BY_WATCH, BY_READ},
    {"2.4", AGED, AGED_2_4, NULL, NULL, BY_STAMP, BY_WATCH, BY_WATCH, BY_READ},
    {"7.0, scheme=timestamp", DIRECT, AGED_PLAIN, NULL, NULL, BY_STAMP,
        BY_WATCH, BY_WATCH, BY_READ},
    {"7.0, scheme=timestamp, no WATCH", USER, AGED_PLAIN, "-watch -multi", NULL,
        BY_STAMP, BY_BARE, BY_BARE, BY_READ}};

enum { PLACES = sizeof(places) / sizeof(places[0]) };

static const struct place *here;
static struct aged *aged;     /* NULL at a real server */
static redisContext *monitor; /* of a real server */
static char here_url[2 * LOCAL_PATH];

/* A lock is a time there, and has no ttl. */
static inline bool stamps_here(void)
{
    return here->acquire == BY_STAMP;
}

/* ... and is changed without WATCH. */
static inline bool bare_here(void)
{
    return here->release == BY_BARE;
}

/* What the clients are told; old servers need no order. */
static inline const char *query_here(void)
{
    return stamps_here() && here->kind != AGED ? "?scheme=timestamp" : "";
}

/* ---------------------------------------------------------- a group's place */

static inline void place_of_aged(void)
{
    redis_start(&server, NULL);
    aged = aged_start(here->age, &server);
    if (here->without)
        aged_refuse(aged, here->without, here->words);
    snprintf(here_url, sizeof(here_url), "%s", aged_url(aged));
}

static inline void let_alice_in(void)
{
    char rights[64], *rest;
    redis_run(&server, "ACL", "SETUSER", "alice", "reset", "on", ">secret",
        "~*", "&*", "+@all", NULL);
    snprintf(rights, sizeof(rights), "%s", here->without);
    for (char *right = strtok_r(rights, " ", &rest); right;
         right = strtok_r(NULL, " ", &rest))
        redis_run(&server, "ACL", "SETUSER", "alice", right, NULL);
}

static inline void place_of_real(void)
{
    if (here->kind == RENAMED)
        redis_start(&server, "--rename-command", "EVAL", "", "--rename-command",
            "EVALSHA", "", "--rename-command", "SCRIPT", "", NULL);
    else
        redis_start(&server, NULL);
    if (here->kind == USER)
        let_alice_in();
    snprintf(here_url, sizeof(here_url), "%s://%s127.0.0.1:%u%s", server.scheme,
        here->kind == USER ? "alice:secret@" : "", (unsigned)server.port,
        query_here());
    monitor = redisConnectUnix(server.path);
    assert_true(monitor && monitor->err == 0);
    redisReply *reply = redisCommand(monitor, "MONITOR");
    assert_true(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

static inline int place_open(void **state)
{
    const char *skip_live = getenv("NXLOCK_SKIP_LIVE");
    if (skip_live && strcmp(skip_live, "1") == 0)
        return test_skip("NXLOCK_SKIP_LIVE=1");
    if (here->kind == AGED)
        place_of_aged();
    else
        place_of_real();
    server_url = here_url;
    return 0;
}

static inline int place_close(void **state)
{
    if (monitor)
        redisFree(monitor);
    monitor = NULL;
    aged_stop(aged);
    aged = NULL;
    redis_stop(&server);
    return 0;
}

/* ----------------------------------------------------------- what was sent */

/* How often each way was gone since the test began. */
struct ways {
    long n[WAYS];
};

static inline long calls(const char *name)
{
    return aged ? (long)aged_count(aged, name) : redis_calls(&server, name);
}

/* A value is read once in each way. Beside an inspection (EXISTS), SETNX, and
 * WATCH but for a release ask for its ttl, and so does the clock's probe
 * (EXPIREAT); where there is TIME they ask for that, too, and so does who
 * learns what there is. */
static inline struct ways stamp_ways_so_far(void)
{
    struct ways w = {{0}};
    w.n[BY_SET] = calls("set");
    w.n[BY_SCRIPT] = calls("evalsha") + calls("eval");
    w.n[BY_STAMP] = calls("setnx");
    w.n[BY_WATCH] = calls("watch");
    w.n[BY_READ] = calls("exists");
    long learnt = calls("time");
    if (!aged) /* all others that ask for TIME ask for the ttl */
        learnt -= calls("ttl") - w.n[BY_READ] - calls("expireat");
    w.n[BY_BARE] = calls("getrange") + calls("substr") - learnt -
                   w.n[BY_STAMP] - w.n[BY_WATCH] - w.n[BY_READ];
    if (!aged)
        w.n[BY_BARE] -= w.n[BY_SCRIPT]; /* which read, too */
    return w;
}

static inline struct ways ways_so_far(void)
{
    struct ways w = {{0}};
    if (stamps_here())
        return stamp_ways_so_far();
    if (aged) {
        w.n[BY_SET] = (long)aged_count(aged, "SET * * NX");
        w.n[BY_SCRIPT] =
            (long)(aged_count(aged, "EVALSHA") + aged_count(aged, "EVAL"));
        w.n[BY_WATCH] = (long)aged_count(aged, "WATCH");
        w.n[BY_READ] = (long)aged_count(aged, "GETRANGE");
        w.n[BY_READ] -= w.n[BY_WATCH];
        return w;
    }
    w.n[BY_SET] = redis_calls(&server, "set");
    w.n[BY_SCRIPT] =
        redis_calls(&server, "evalsha") + redis_calls(&server, "eval");
    w.n[BY_WATCH] = redis_calls(&server, "watch");
    w.n[BY_READ] = redis_calls(&server, "exists");
    w.n[BY_READ] -= w.n[BY_WATCH]; /* which asks that, too */
    return w;
}

static inline void assert_went(
    const struct ways *before, enum way way, const char *file, int line)
{
    static const char *const names[] = {"SET NX", "scripts", "WATCH", "reading",
        "SETNX", "neither WATCH nor scripts"};
    struct ways now = ways_so_far();
    bool good = true;
    for (int i = 0; i < WAYS; i++) {
        long count = now.n[i] - before->n[i], due = i == (int)way;
        if (count != due)
            print_error("by %s: %ld, not %ld\n", names[i], count, due);
        good &= count == due;
    }
    if (!good)
        _fail(file, line);
}

/* The call on the lock has this result, and goes this way and no other. */
#define assert_by(way, call, expected, lock)                                   \
    do {                                                                       \
        struct ways strategies_before = ways_so_far();                         \
        assert_result(call, expected, lock);                                   \
        assert_went(&strategies_before, way, __FILE__, __LINE__);              \
    } while (0)

/* ------------------------------------------------------- what must not be */

enum { CONNECTIONS = 4096 };

static inline bool is_clock(const char *key)
{
    const char *at = strstr(key, ":clock:");
    return at && at < strchrnul(key, '\n');
}

/* Commands of one connection, in turn: is this a DEL that nothing guards? The
 * key by which a clock is read is nobody's lock. */
static inline bool unguarded(
    bool *in_multi, const char *name, size_t len, const char *key)
{
    if (len == 5 && strncasecmp(name, "MULTI", len) == 0)
        *in_multi = true;
    else if ((len == 4 && strncasecmp(name, "EXEC", len) == 0) ||
             (len == 7 && strncasecmp(name, "DISCARD", len) == 0))
        *in_multi = false;
    else
        return ((len == 3 && strncasecmp(name, "DEL", len) == 0) ||
                   (len == 6 && strncasecmp(name, "UNLINK", len) == 0)) &&
               !*in_multi && !is_clock(key);
    return false;
}

static inline void assert_log_is_clean(void)
{
    static bool in_multi[CONNECTIONS];
    memset(in_multi, 0, sizeof(in_multi));
    for (const char *at = aged_log(aged); *at != '\0';
         at = strchr(at, '\n') + 1) {
        char *name;
        unsigned long who = strtoul(at, &name, 10) % CONNECTIONS;
        name += *name == ' ';
        if (unguarded(&in_multi[who], name, strcspn(name, " \n"), name))
            fail_msg("%.*s", (int)strcspn(at, "\n"), at);
    }
}

/* A line is: time [db address] "DEL" "key". Those of the tests' own connection
 * have another address, those of scripts "lua". A port is its connection. */
static inline void assert_monitor_is_clean(bool unguarded_is_fine)
{
    static bool in_multi[65536];
    static const char marker[] = "that was all";
    redisReply *reply;
    bool more = true;
    memset(in_multi, 0, sizeof(in_multi));
    redis_run(&server, "ECHO", marker, NULL);
    while (more) {
        assert_int_equal(redisGetReply(monitor, (void **)&reply), REDIS_OK);
        const char *at = strstr(reply->str, " 127.0.0.1:");
        const char *name = strstr(reply->str, "] \"");
        more = !strstr(reply->str, marker);
        if (at && name && at < name && !unguarded_is_fine &&
            unguarded(&in_multi[strtoul(at + 11, NULL, 10) % 65536], name + 3,
                strcspn(name + 3, "\""), name))
            fail_msg("%s", reply->str);
        freeReplyObject(reply);
    }
}

/* No connection is left inside a transaction. */
static inline bool nobody_in_multi(void)
{
    redisReply *list = redis_command(&server, "CLIENT", "LIST", NULL);
    bool none = true;
    for (const char *at = list->str; (at = strstr(at, " multi=")); at++)
        none &= strncmp(at, " multi=-1", 9) == 0;
    freeReplyObject(list);
    return none;
}

static inline int place_clean(void **state)
{
    int rc = live_clean(state);
    if (aged)
        aged_forget(aged);
    return rc;
}

static inline int place_check(void **state)
{
    if (aged)
        assert_log_is_clean();
    else if (monitor) /* without WATCH only the time guards a DEL */
        assert_monitor_is_clean(bare_here());
    return 0;
}

#define place_test(function)                                                   \
    cmocka_unit_test_setup_teardown(function, place_clean, place_check)

/* The array "tests" at each place; adds up into rc. */
#define places_run(rc)                                                         \
    for (here = places; here < places + PLACES; here++)                        \
    rc += cmocka_run_group_tests_name(                                         \
        here->name, tests, place_open, place_close)

/* ------------------------------------------------------------------ clients */

/* With the place's parameters and these. */
static inline nxl_client *client_here(const char *parameters)
{
    char url[512];
    const char *before = strchr(server_url, '?') ? "&" : "?";
    snprintf(url, sizeof(url), "%s%s%s", server_url,
        *parameters != '\0' ? before : "", parameters);
    return client_at(url);
}

static inline int look(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

/* A client that already knows which strategy each verb uses here. */
static inline nxl_client *learnt_client(const char *parameters)
{
    nxl_client *client = client_here(parameters);
    nxl_lock *lock = new_lock(client, "to learn", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
    assert_result(look(lock), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
    return client;
}

/* ------------------------------------------------------------- what stands */

/* A time is later than the lease's end: rounded up, one second more, and the
 * doubt about the clock; and what GETSET wrote without WATCH is as long as any
 * lock there. */
enum { STAMP_LATER_MS = 4000, LONGEST_LOCK_MS = 60000 };

static inline int64_t later_ms(void)
{
    return stamps_here() ? STAMP_LATER_MS : 0;
}

/* Tests that go from place to place: a lock's form is where it came from. */
static bool any_form;

static inline bool stamped_at(const char *key)
{
    char value[700];
    int64_t end_s;
    if (!any_form)
        return stamps_here();
    return redis_get(&server, key, value, sizeof(value)) &&
           stamp_parse(slice_of(value), &end_s) == STAMP_OURS;
}

/* For how long still. */
static inline int64_t left_of_stamp(const char *key)
{
    char value[700];
    struct timespec now;
    int64_t end_s = 0;
    assert_true(redis_get(&server, key, value, sizeof(value)));
    assert_int_not_equal(stamp_parse(slice_of(value), &end_s), STAMP_NONE);
    clock_gettime(CLOCK_REALTIME, &now);
    return end_s * 1000 - now.tv_sec * 1000 - now.tv_nsec / 1000000;
}

static inline void live_assert_ours(
    const char *key, const char *token, const char *file, int line)
{
    char value[700] = "";
    bool there = redis_get(&server, key, value, sizeof(value));
    bool ours = there &&
                (stamped_at(key) ? stamp_is_of(slice_of(value), slice_of(token))
                                 : strcmp(value, token) == 0);
    if (ours)
        return;
    print_error("%s is not of %s\n", there ? value : "nothing", token);
    _fail(file, line);
}

#define assert_ours(key, lock)                                                 \
    live_assert_ours(key, nxl_lock_token(lock), __FILE__, __LINE__)

/* The lease of what stands there, by its ttl or by its time. */
static inline void live_assert_lasts(
    const char *key, int64_t least, int64_t most, const char *file, int line)
{
    int64_t ttl = redis_pttl(&server, key), left = ttl;
    bool stamped = stamped_at(key);
    if (stamped) {
        left = left_of_stamp(key);
        if (bare_here() && most < LONGEST_LOCK_MS)
            most = LONGEST_LOCK_MS;
        most += STAMP_LATER_MS;
    }
    if (left >= least && left <= most && (!stamped || ttl == -1))
        return;
    print_error("it lasts %lld ms, not %lld ... %lld; ttl %lld\n",
        (long long)left, (long long)least, (long long)most, (long long)ttl);
    _fail(file, line);
}

#define assert_lasts(key, least, most)                                         \
    live_assert_lasts(key, least, most, __FILE__, __LINE__)

/* A program of the scheme wrote it: whole seconds, so much from now. */
static inline void time_stands(const char *key, int64_t offset_s)
{
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)time(NULL) + offset_s);
    redis_run(&server, "SET", key, value, NULL);
}

#endif
