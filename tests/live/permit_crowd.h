/* SPDX-License-Identifier: MIT */
/*
 * Processes that compete for one name with locks of all kinds. They record on a
 * shared board when they relied on a lock, before they do what ends that: so
 * the record of one that was killed is true, and of one that was stopped.
 *
 * NXLOCK_OLD_LIBRARY: the path of a libnxlock.so that knows no permits, which
 * the members of kind "old" use.
 */
#ifndef NXLOCK_TESTS_PERMIT_CROWD_H
#define NXLOCK_TESTS_PERMIT_CROWD_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "live/gate_rig.h" /* dice */

enum { MEMBERS_MAX = 15, HOLDS = 30000 };
enum { TTL_MS = 300, LONG_TTL_MS = 1200, LEASE_MS = LONG_TTL_MS + 120 };
enum { LONG_WAIT_MS = 20000, TIMEOUT_MS = 400, LATE_CALL_MS = 1500 };

/* permits 0: exclusive, or with shared, shared. */
struct role {
    int64_t permits, weight;
    int shared;
    bool old;  /* NXLOCK_OLD_LIBRARY */
    bool poll; /* poll=1 */
};

struct hold {
    _Atomic uint64_t begin, end; /* held in between, at most */
    int64_t takes, allows;
    int member;
};

struct member {
    struct hold hold[HOLDS];
    _Atomic int holds;
    _Atomic int results[8]; /* of acquire; 7: errors */
    _Atomic int wrong_type; /* of an old library */
    uint64_t longest_wait;  /* of a process that was not disturbed */
};

/* What must not happen, and what the members have looked at. */
enum count {
    COUNT_CHECKED, /* leases that were compared with the server's */
    COUNT_PAST,    /* deadlines after the server's end of the lease */
    COUNT_GONE,    /* locks that the server did not have any longer */
    COUNT_STARVED, /* waits of LONG_WAIT_MS without a grant */
    COUNT_HUNG,    /* calls that took longer than they may */
    COUNT_ERRORS,  /* acquires with an error that no fault explains */
    COUNT_LOST,    /* releases and extends that came too late */
    COUNTS
};

struct board {
    struct member member[MEMBERS_MAX];
    _Atomic int count[COUNTS];
    _Atomic int stops[MEMBERS_MAX]; /* how often each was stopped */
    _Atomic int server_faults;      /* calls may take longer */
    _Atomic int over;               /* 1: those with an even number end */
    _Atomic bool full;
    char said[512]; /* what the last of COUNT_ERRORS said */
};

static struct board *board; /* shared */
static const char *crowd_name;

/* The functions of one version of the library. */
struct library {
    __typeof__(&nxl_client_new) client_new;
    __typeof__(&nxl_client_free) client_free;
    __typeof__(&nxl_lock_new) lock_new;
    __typeof__(&nxl_lock_free) lock_free;
    __typeof__(&nxl_lock_acquire) acquire;
    __typeof__(&nxl_lock_extend) extend;
    __typeof__(&nxl_lock_release) release;
    __typeof__(&nxl_lock_deadline) deadline;
    __typeof__(&nxl_lock_token) token;
    __typeof__(&nxl_lock_errmsg) errmsg;
};

static inline struct library library_of(const struct role *role)
{
    struct library l = {nxl_client_new, nxl_client_free, nxl_lock_new,
        nxl_lock_free, nxl_lock_acquire, nxl_lock_extend, nxl_lock_release,
        nxl_lock_deadline, nxl_lock_token, nxl_lock_errmsg};
    if (!role->old)
        return l;
    void *so = dlopen(getenv("NXLOCK_OLD_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (!so)
        _exit(6);
#define OLD(function) *(void **)&l.function = dlsym(so, "nxl_" #function)
#define OLD_LOCK(function)                                                     \
    *(void **)&l.function = dlsym(so, "nxl_lock_" #function)
    OLD(client_new);
    OLD(client_free);
    OLD(lock_new);
    OLD(lock_free);
    OLD_LOCK(acquire);
    OLD_LOCK(extend);
    OLD_LOCK(release);
    OLD_LOCK(deadline);
    OLD_LOCK(token);
    OLD_LOCK(errmsg);
#undef OLD
#undef OLD_LOCK
    return l;
}

/* Of one process. */
struct contender {
    struct library library;
    const struct role *role;
    nxl_client *client;
    nxl_lock *lock;
    redisContext *bare; /* its own connection to the server */
    struct member *member;
    int number, ttl_ms;
    uint64_t dice;
};

static inline uint64_t ms_from_now(int ms)
{
    return test_now_ns() + (uint64_t)ms * UINT64_C(1000000);
}

static inline void count(enum count what)
{
    board->count[what]++;
}

static inline void pause_us(int us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

/* -------------------------------------------------------------- the record */

static inline struct hold *hold_begins(struct contender *c, uint64_t end)
{
    struct member *m = c->member;
    struct hold *hold = &m->hold[m->holds];
    const struct role *role = c->role;
    hold->member = c->number;
    hold->takes = role->weight ? role->weight : 1;
    hold->allows = role->shared ? INT64_MAX : role->permits ? role->permits : 1;
    hold->end = end;
    hold->begin = test_now_ns();
    m->holds++;
    if (m->holds == HOLDS)
        board->full = true;
    return hold;
}

static inline void hold_ends(struct hold *hold)
{
    uint64_t now = test_now_ns();
    if (now < hold->end)
        hold->end = now;
}

static inline bool bare_up(struct contender *c)
{
    struct timeval limit = {1, 0};
    if (c->bare && !c->bare->err)
        return true;
    if (c->bare)
        redisFree(c->bare);
    c->bare = redisConnectUnixWithTimeout(server.path, limit);
    return c->bare && !c->bare->err &&
           redisSetTimeout(c->bare, limit) == REDIS_OK;
}

/* Is the deadline before the end of the lease at the server? Asked in one
 * script: how many ms are left, or -1. */
static inline void check_lease(
    struct contender *c, const char *token, uint64_t deadline)
{
    if (!bare_up(c))
        return;
    redisReply *r = redisCommand(c->bare, "EVAL %s 1 %s %s",
        "if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then "
        "return redis.call('GET', KEYS[1]) == ARGV[1] "
        "and redis.call('PTTL', KEYS[1]) or -1 end "
        "local t, e = redis.call('TIME'), "
        "redis.call('ZSCORE', KEYS[1], ARGV[1]) "
        "return e and e - t[1] * 1000 - math.floor(t[2] / 1000) or -1",
        crowd_name, token);
    uint64_t now = test_now_ns();
    if (r && r->type == REDIS_REPLY_INTEGER) {
        count(COUNT_CHECKED);
        if (r->integer < 0 && deadline > now)
            count(COUNT_GONE);
        else if (r->integer >= 0 &&
                 deadline > now + ((uint64_t)r->integer + 1) * 1000000)
            count(COUNT_PAST);
    }
    if (r)
        freeReplyObject(r);
}

/* ---------------------------------------------------------------- one turn */

/* Some hold until their lease is nearly over, or longer. */
static inline int hold_us(struct contender *c)
{
    int kind = dice_below(&c->dice, 400);
    if (kind == 0)
        return c->ttl_ms * 1300;
    return kind < 6 ? c->ttl_ms * 800 : dice_below(&c->dice, 8000);
}

static inline int wait_ms(struct contender *c)
{
    int kind = dice_below(&c->dice, 10);
    return kind == 0 ? 0 : kind < 3 ? dice_below(&c->dice, 300) : LONG_WAIT_MS;
}

/* disturbed: the server, the network or its own stop may have kept it. */
static inline void note_wait(struct contender *c, int rc, uint64_t took_ms,
    int waited_ms, bool disturbed)
{
    c->member->results[rc < 0 || rc > 6 ? 7 : rc]++;
    if (rc == NXL_E_WRONG_TYPE && c->role->old) {
        c->member->wrong_type++;
    } else if (rc < 0 && rc != NXL_E_UNREACHABLE && rc != NXL_E_REFUSED) {
        count(COUNT_ERRORS);
        snprintf(
            board->said, sizeof(board->said), "%s", c->library.errmsg(c->lock));
    }
    if (disturbed)
        return;
    if (took_ms > c->member->longest_wait)
        c->member->longest_wait = took_ms;
    if (rc == NXL_BUSY && waited_ms == LONG_WAIT_MS && !c->role->poll &&
        !c->role->old)
        count(COUNT_STARVED);
    if (took_ms > (uint64_t)(waited_ms + TIMEOUT_MS + LATE_CALL_MS))
        count(COUNT_HUNG);
}

static inline void use(struct contender *c)
{
    const struct library *l = &c->library;
    char token[512];
    struct hold *hold = hold_begins(c, l->deadline(c->lock));
    int us = hold_us(c);
    snprintf(token, sizeof(token), "%s", l->token(c->lock));
    if (dice_below(&c->dice, 8) == 0)
        check_lease(c, token, hold->end);
    pause_us(us / 2);
    if (us > c->ttl_ms * 500 && dice_below(&c->dice, 2) == 0) {
        int rc = l->extend(c->lock, 0);
        if (rc == NXL_OK)
            hold->end = l->deadline(c->lock);
        else
            hold_ends(hold);
        board->count[COUNT_LOST] += rc == NXL_LOST;
    }
    pause_us(us / 2);
    hold_ends(hold);
    board->count[COUNT_LOST] += l->release(c->lock) == NXL_LOST;
}

static inline void contend(struct contender *c)
{
    int most = wait_ms(c);
    int stops = board->stops[c->number], server_faults = board->server_faults;
    uint64_t asked = test_now_ns();
    int rc = c->library.acquire(c->lock, most);
    uint64_t took_ms = (test_now_ns() - asked) / 1000000;
    note_wait(c, rc, took_ms, most,
        stops != board->stops[c->number] ||
            server_faults != board->server_faults);
    if (rc == NXL_OK)
        use(c);
    pause_us(dice_below(&c->dice, rc == NXL_OK ? 3000 : 20000));
}

static inline bool goes_on(const struct contender *c)
{
    return board->over <= c->number % 2 && c->member->holds < HOLDS;
}

static inline void make_lock(struct contender *c)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    c->ttl_ms = dice_below(&c->dice, 11) ? TTL_MS : LONG_TTL_MS;
    options.ttl_ms = c->ttl_ms;
    options.permits = c->role->permits;
    options.weight = c->role->weight;
    options.shared = c->role->shared;
    options.min_hold_ms = dice_below(&c->dice, 9) ? 0 : 40;
    options.retry_min_ms = 5;
    options.retry_max_ms = 25;
    if (c->library.lock_new(&c->lock, c->client, crowd_name, &options) !=
        NXL_OK)
        _exit(5);
}

/* Never returns. */
static inline void run_member(
    int number, const struct role *role, const char *url, uint64_t dice)
{
    struct contender c = {.library = library_of(role),
        .role = role,
        .member = &board->member[number],
        .number = number,
        .dice = dice};
    char whole[2 * LOCAL_PATH];
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to what the server closed */
    snprintf(whole, sizeof(whole), "%s?max_ttl_ms=%d&timeout_ms=%d%s", url,
        2 * LONG_TTL_MS, TIMEOUT_MS, role->poll ? "&poll=1" : "");
    if (c.library.client_new(&c.client, whole, NULL) != NXL_OK)
        _exit(4);
    while (goes_on(&c)) {
        make_lock(&c);
        for (int i = 0; i < 40 && goes_on(&c); i++)
            contend(&c);
        c.library.lock_free(c.lock);
    }
    c.library.client_free(c.client);
    _exit(0);
}

/* ----------------------------------------------------------------- verdict */

struct verdict {
    size_t holds, violations;
    int64_t most_used; /* at one time */
    size_t together;   /* grants beside others */
};

static inline int by_begin(const void *a, const void *b)
{
    const struct hold *x = *(const struct hold *const *)a;
    const struct hold *y = *(const struct hold *const *)b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Were more permits held at any time than any of their holders allows? */
static inline struct verdict judge(void)
{
    static const struct hold *all[MEMBERS_MAX * HOLDS];
    struct verdict v = {0};
    for (int i = 0; i < MEMBERS_MAX; i++)
        for (int k = 0; k < board->member[i].holds; k++)
            all[v.holds++] = &board->member[i].hold[k];
    qsort(all, v.holds, sizeof(*all), by_begin);
    const struct hold *now[MEMBERS_MAX * 4];
    size_t held = 0;
    for (size_t i = 0; i < v.holds; i++) {
        int64_t used = all[i]->takes, allows = all[i]->allows;
        size_t kept = 0;
        for (size_t k = 0; k < held; k++)
            if (now[k]->end > all[i]->begin)
                now[kept++] = now[k];
        held = kept;
        for (size_t k = 0; k < held; k++) {
            used += now[k]->takes;
            allows = now[k]->allows < allows ? now[k]->allows : allows;
        }
        v.together += held > 0;
        v.most_used = used > v.most_used ? used : v.most_used;
        if (used > allows && v.violations++ < 5)
            print_message("# member %d began while %zu others held: %lld "
                          "permits, of %lld\n",
                all[i]->member, held, (long long)used, (long long)allows);
        assert_true(held < sizeof(now) / sizeof(now[0]));
        now[held++] = all[i];
    }
    return v;
}

#endif
