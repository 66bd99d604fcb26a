/* SPDX-License-Identifier: MIT */
/*
 * The servers on which the strategies are used: real ones that refuse scripts
 * in several ways, and others that imitate older versions. The scenes of a file
 * with "servers: one for each strategy", or a group of tests, are played on
 * each. Which strategy a call used is read from the server's own counters, or
 * from the log of the proxy that imitates another version. At the end of each
 * scene it is checked that no DEL of a lock was sent outside a script or a
 * transaction (except where there is no WATCH).
 */
#ifndef NXLOCK_TESTS_LIVE_STRATEGIES_RIG_H
#define NXLOCK_TESTS_LIVE_STRATEGIES_RIG_H

#include "live/quorum_rig.h"
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
    const char *told; /* how the client describes it */
};

#define VIA_TOKENS BY_SET, BY_WATCH, BY_WATCH, BY_READ, "SET NX PX + WATCH"
#define VIA_SCRIPTS                                                            \
    BY_SET, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT, "SET NX PX + scripts"
#define VIA_TIMES                                                              \
    BY_STAMP, BY_WATCH, BY_WATCH, BY_READ, "timestamps (weaker promises)"

/* The name, kind, version, what is refused and how; how each verb is sent. */
static const struct place strategy_places[] = {
    {"7.0", DIRECT, AGED_PLAIN, NULL, NULL, VIA_SCRIPTS},
    {"7.0, user without @scripting", USER, AGED_PLAIN, "-@scripting", NULL,
        VIA_TOKENS},
    {"7.0, scripts renamed away", RENAMED, AGED_PLAIN, NULL, NULL, VIA_TOKENS},
    {"2.6.9", AGED, AGED_2_6, NULL, NULL, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT,
        BY_SCRIPT, "SETNX script + scripts"},
    {"2.2, no GETRANGE", AGED, AGED_2_2, "GETRANGE", AGED_UNKNOWN, VIA_TIMES},
    {"2.4", AGED, AGED_2_4, NULL, NULL, VIA_TIMES},
    {"7.0, scheme=timestamp", DIRECT, AGED_PLAIN, NULL, NULL, VIA_TIMES},
    {"7.0, scheme=timestamp, no WATCH", USER, AGED_PLAIN, "-watch -multi", NULL,
        BY_STAMP, BY_BARE, BY_BARE, BY_READ,
        "without WATCH (weakest promises)"},
    /* Only to begin with, where a scene goes from one to another. */
    {"7.0 behind a proxy", AGED, AGED_PLAIN, NULL, NULL, VIA_SCRIPTS},
    {"7.0 without scripts", AGED, AGED_PLAIN, "EVAL EVALSHA SCRIPT",
        AGED_NOPERM, VIA_TOKENS},
};

enum { PLACES = 8, CHANGING = 8, ALL_PLACES = 10 };

static const struct place *here; /* NULL: a group that is not of strategies */
static struct aged *aged;        /* NULL at a real server */
static redisContext *monitor;    /* of a real server */

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

/* What clients are told; old servers need no order. */
static inline const char *query_here(void)
{
    return stamps_here() && here->kind != AGED ? "scheme=timestamp" : "";
}

/* By which strategy a verb is sent there. */
static inline enum way way_here(const char *verb)
{
    return !strcmp(verb, "acquire")   ? here->acquire
           : !strcmp(verb, "extend")  ? here->extend
           : !strcmp(verb, "inspect") ? here->inspect
           /* What is broken is compared, whatever it means: by the best way. */
           : !strcmp(verb, "break") && *query_here() != '\0' ? BY_SCRIPT
                                                             : here->release;
}

/* How many steps it has there: read under WATCH and then write, or one. */
static inline unsigned steps_here(const char *verb)
{
    enum way way = way_here(verb);
    return way == BY_WATCH || way == BY_BARE ? 2 : 1;
}

/* Is this user denied the script that knows the locks that several hold? */
static inline bool scripts_denied_here(void)
{
    return here->without && !stamps_here();
}

/* Of "only: not bare": whether a scene is for this place. */
static inline bool is_for(const char *trait)
{
    const struct {
        const char *trait;
        bool here;
    } traits[] = {
        {"everywhere", true},
        {"tokens", !stamps_here()},
        {"times", stamps_here()},
        {"not without WATCH", !bare_here()},
        {"times with WATCH", stamps_here() && !bare_here()},
        {"without WATCH", bare_here()},
        {"scripts are denied", scripts_denied_here()},
        {"scripts are not denied", !scripts_denied_here()},
    };
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++)
        if (!strcmp(traits[i].trait, trait))
            return traits[i].here;
    fail_msg("only: %s?", trait);
    return false;
}

/* ---------------------------------------------------------- a group's place */

static inline void place_of_aged(void)
{
    aged = aged_start(here->age, &servers[0]);
    aged_refuse(aged, here->without, here->words);
}

/* From now on this one answers. */
static inline void go_to(const struct place *place, bool cut)
{
    here = place;
    aged_refuse(aged, place->without, place->words);
    aged_profile_now(aged, place->age, cut);
}

static inline void let_alice_in(void)
{
    char rights[64], *rest;
    redis_run(&servers[0], "ACL", "SETUSER", "alice", "reset", "on", ">secret",
        "~*", "&*", "+@all", NULL);
    snprintf(rights, sizeof(rights), "%s", here->without);
    for (char *right = strtok_r(rights, " ", &rest); right;
         right = strtok_r(NULL, " ", &rest))
        redis_run(&servers[0], "ACL", "SETUSER", "alice", right, NULL);
}

static inline void watch_commands(void)
{
    monitor = redisConnectUnix(servers[0].path);
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
    on.servers = 1;
    if (here->kind == RENAMED)
        redis_start(&servers[0], "--rename-command", "EVAL", "",
            "--rename-command", "EVALSHA", "", "--rename-command", "SCRIPT", "",
            NULL);
    else
        redis_start(&servers[0], NULL);
    if (here->kind == USER)
        let_alice_in();
    if (here->kind == AGED)
        place_of_aged();
    else
        watch_commands();
    return 0;
}

static inline int place_close(void **state)
{
    if (monitor)
        redisFree(monitor);
    monitor = NULL;
    aged_stop(aged);
    aged = NULL;
    redis_stop(&servers[0]);
    return 0;
}

/* The server's URL there, or that of a proxy before it. */
static inline const char *url_here(const struct proxy *proxy)
{
    static char url[2 * LOCAL_PATH];
    const char *user = here->kind == USER ? "alice:secret@" : "";
    if (aged && !proxy)
        snprintf(url, sizeof(url), "%s", aged_url(aged));
    else if (proxy)
        snprintf(url, sizeof(url), "%s://%s%s",
            aged ? "redis" : servers[0].scheme, user, proxy_address(proxy));
    else
        snprintf(url, sizeof(url), "%s://%s127.0.0.1:%u", servers[0].scheme,
            user, (unsigned)servers[0].port);
    return url;
}

static inline struct proxy *proxy_here(void)
{
    return aged ? proxy_start(aged_path(aged), 0) : proxy_to(&servers[0], true);
}

/* With the place's parameters and these. */
static inline nxl_client *client_here(const char *parameters)
{
    char url[3 * LOCAL_PATH];
    const char *both = *query_here() && *parameters ? "&" : "";
    snprintf(url, sizeof(url), "%s?%s%s%s", url_here(NULL), query_here(), both,
        parameters);
    return client_at(url);
}

/* ----------------------------------------------------------- what was sent */

/* How often each way was gone since the test began. */
struct ways {
    long n[WAYS];
};

static inline long calls_here(const char *name)
{
    return aged ? (long)aged_count(aged, name) : redis_calls(&servers[0], name);
}

/* A value is read once in each way. Beside an inspection (EXISTS), SETNX, and
 * WATCH but for a release ask for its ttl, and so does the clock's probe
 * (EXPIREAT); where there is TIME they ask for that, too, and so does who
 * learns what there is. */
static inline struct ways stamp_ways_so_far(void)
{
    struct ways w = {{0}};
    w.n[BY_SET] = calls_here("set");
    w.n[BY_SCRIPT] = calls_here("evalsha") + calls_here("eval");
    w.n[BY_STAMP] = calls_here("setnx");
    w.n[BY_WATCH] = calls_here("watch");
    w.n[BY_READ] = calls_here("exists");
    long learnt = calls_here("time");
    if (!aged) /* all others that ask for TIME ask for the ttl */
        learnt -= calls_here("ttl") - w.n[BY_READ] - calls_here("expireat");
    w.n[BY_BARE] = calls_here("getrange") + calls_here("substr") - learnt -
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
    w.n[BY_SET] = calls_here(aged ? "SET * * NX" : "set");
    w.n[BY_SCRIPT] = calls_here("evalsha") + calls_here("eval");
    w.n[BY_WATCH] = calls_here("watch");
    w.n[BY_READ] = calls_here(aged ? "getrange" : "exists");
    w.n[BY_READ] -= w.n[BY_WATCH]; /* which asks that, too */
    return w;
}

/* NULL, or how else than once by that way a call was sent since then. */
static inline const char *went_otherwise(
    const struct ways *before, enum way way)
{
    static const char *const names[] = {"SET NX", "scripts", "WATCH", "reading",
        "SETNX", "neither WATCH nor scripts"};
    static char text[80];
    struct ways now = ways_so_far();
    for (int i = 0; i < WAYS; i++) {
        long count = now.n[i] - before->n[i], due = i == (int)way;
        snprintf(text, sizeof(text), "sent by %s %ld times, not %ld", names[i],
            count, due);
        if (count != due)
            return text;
    }
    return NULL;
}

/* ------------------------------------------------------- what must not be */

enum { CONNECTIONS = 65536 };

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
    static bool in_multi[CONNECTIONS];
    static const char marker[] = "that was all";
    redisReply *reply;
    bool more = true;
    memset(in_multi, 0, sizeof(in_multi));
    redis_run(&servers[0], "ECHO", marker, NULL);
    while (more) {
        assert_int_equal(redisGetReply(monitor, (void **)&reply), REDIS_OK);
        const char *at = strstr(reply->str, " 127.0.0.1:");
        const char *name = strstr(reply->str, "] \"");
        more = !strstr(reply->str, marker);
        if (at && name && at < name && !unguarded_is_fine &&
            unguarded(&in_multi[strtoul(at + 11, NULL, 10) % CONNECTIONS],
                name + 3, strcspn(name + 3, "\""), name))
            fail_msg("%s", reply->str);
        freeReplyObject(reply);
    }
}

/* How many connections are inside a transaction. */
static inline int transactions(void)
{
    redisReply *list = redis_command(&servers[0], "CLIENT", "LIST", NULL);
    int count = 0;
    for (const char *at = list->str; (at = strstr(at, " multi=")); at++)
        count += strncmp(at, " multi=-1", 9) != 0;
    freeReplyObject(list);
    return count;
}

/* What a scene that failed has left is not the next one's. */
static inline int place_clean(void **state)
{
    if (monitor)
        assert_monitor_is_clean(true);
    redis_thaw(&servers[0]);
    int rc = quorum_clean(state);
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

/* ---------------------------------------------------------- what is stored */

/* A time is later than the lease's end by at most so much: rounded up, one
 * second more, and the doubt about the clock. */
enum { STAMP_LATER_MS = 4000 };

/* Whether the value is that of a lock with the token: in either form, for a
 * server that became another one has locks of both. */
static inline bool is_lock_of(const char *value, const char *token)
{
    size_t length = strlen(token);
    return length > 0 && (!strncmp(value, token, length) ||
                             stamp_is_of(slice_of(value), slice_of(token)));
}

/* At least so long the lock lasts, in ms: its ttl, or, less than the above, the
 * time that it is. */
static inline int64_t lease_of(const char *key)
{
    char value[700];
    struct timespec now;
    int64_t end_s = 0, ttl_ms = redis_pttl(&servers[0], key);
    if (!redis_get(&servers[0], key, value, sizeof(value)) ||
        stamp_parse(slice_of(value), &end_s) != STAMP_OURS)
        return ttl_ms;
    if (ttl_ms != -1) /* a time that goes away by itself is none */
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    return end_s * 1000 - now.tv_sec * 1000 - now.tv_nsec / 1000000 -
           STAMP_LATER_MS;
}

#endif
