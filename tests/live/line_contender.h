/* SPDX-License-Identifier: MIT */
/*
 * Contenders for a few names on one server, most of which wait in line: threads
 * of processes that record on a shared board when they relied on a lock, before
 * they do what ends that. So the record of one that was killed is true.
 *
 * NXLOCK_OLD_LIBRARY: the path of another version of libnxlock.so, which some
 * of the processes then use.
 */
#ifndef NXLOCK_TESTS_LINE_CONTENDER_H
#define NXLOCK_TESTS_LINE_CONTENDER_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "live/gate_rig.h" /* dice */

enum { NAMES = 4, PROCESSES = 28, THREADS = 2 };
enum { SLOTS = PROCESSES * THREADS, HOLDS = 30000 };
/* 10 of 11 leases are of the first kind; see beat_ms() in core/line.c. */
enum { TTL_MS = 300, LONG_TTL_MS = 1500, LEASE_MS = LONG_TTL_MS + 150 };
enum { LONG_WAIT_MS = 20000, TIMEOUT_MS = 400, LATE_CALL_MS = 1500 };

static const char *const name_of[NAMES] = {"a", "b", "{t}c", "d"};
enum { FENCED_FROM = 3 }; /* names of which every lock has a fencing token */

enum kind {
    KIND_LINE,    /* one thread */
    KIND_TWINS,   /* two threads and locks, one client: one channel */
    KIND_BARE,    /* waits in line, but is released by another program */
    KIND_NO_LINE, /* poll=1 */
    KIND_OLD,     /* NXLOCK_OLD_LIBRARY, or as KIND_LINE */
    KIND_POLLER,  /* SET NX and compare-and-delete, no nxlock */
    KINDS
};

static const char *const name_of_kind[KINDS] = {
    "in line", "twins", "released by others", "poll=1", "old", "pollers"};

struct hold {
    _Atomic uint64_t begin, end; /* held in between, at most */
    uint64_t asked;              /* when the acquire began */
    uint64_t fence;
    int name, slot;
};

struct slot {
    struct hold hold[HOLDS];
    _Atomic int holds;
    _Atomic int results[8]; /* of acquire; 7: errors */
    uint64_t longest_wait;  /* of a process that was not stopped */
};

/* What must not happen, and what the contenders have looked at. */
enum count {
    COUNT_CHECKED, /* leases that were compared with the server's */
    COUNT_PAST,    /* deadlines after the server's end of the key */
    COUNT_GONE,    /* locks that the server did not have any longer */
    COUNT_STARVED, /* waits in line of LONG_WAIT_MS without a grant */
    COUNT_HUNG,    /* calls that took longer than they may */
    COUNT_ERRORS,  /* acquires with an error that no fault explains */
    COUNT_LOST,    /* releases and extends that came too late */
    COUNTS
};

struct board {
    struct slot slot[SLOTS];
    _Atomic int count[COUNTS];
    _Atomic int stops[PROCESSES]; /* how often each was stopped */
    _Atomic int server_faults;    /* of the server: calls may take longer */
    _Atomic int over;             /* 1: the processes with an even number end */
    _Atomic bool full;
    char said[512]; /* what the last of COUNT_ERRORS said */
};

static struct board *board; /* shared */

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
    __typeof__(&nxl_lock_fence) fence;
    __typeof__(&nxl_lock_errmsg) errmsg;
};

static const struct library this_library = {nxl_client_new, nxl_client_free,
    nxl_lock_new, nxl_lock_free, nxl_lock_acquire, nxl_lock_extend,
    nxl_lock_release, nxl_lock_deadline, nxl_lock_token, nxl_lock_fence,
    nxl_lock_errmsg};

/* Of one thread. */
struct contender {
    const struct library *library;
    nxl_client *client;
    nxl_lock *lock;
    redisContext *bare; /* its own connection to the server */
    struct slot *slot;
    enum kind kind;
    int process, name, ttl_ms;
    uint64_t dice;
};

static inline void pause_us(int us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

static inline uint64_t ms_from_now(int ms)
{
    return test_now_ns() + (uint64_t)ms * UINT64_C(1000000);
}

static inline void count(enum count what)
{
    board->count[what]++;
}

/* -------------------------------------------------------------- the record */

static inline struct hold *hold_begins(
    struct contender *c, uint64_t asked, uint64_t end, uint64_t fence)
{
    struct slot *slot = c->slot;
    struct hold *hold = &slot->hold[slot->holds];
    hold->name = c->name;
    hold->slot = (int)(slot - board->slot);
    hold->asked = asked;
    hold->fence = fence;
    hold->end = end;
    hold->begin = test_now_ns();
    slot->holds++;
    if (slot->holds == HOLDS)
        board->full = true;
    return hold;
}

static inline void hold_ends(struct hold *hold)
{
    uint64_t now = test_now_ns();
    if (now < hold->end)
        hold->end = now;
}

/* ------------------------------------------------- by a connection of its own
 */

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

static inline void bare_release(struct contender *c, const char *token)
{
    if (bare_up(c))
        freeReplyObject(redisCommand(c->bare, "EVAL %s 1 %s %s",
            "if redis.call('GET', KEYS[1]) == ARGV[1] then "
            "return redis.call('DEL', KEYS[1]) end return 0",
            name_of[c->name], token));
}

/* Is the deadline before the server's? The server is asked for the value and
 * the rest of the TTL in one step. */
static inline void check_lease(
    struct contender *c, const char *token, uint64_t deadline)
{
    if (!bare_up(c))
        return;
    redisReply *r = redisCommand(c->bare, "EVAL %s 1 %s",
        "return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}",
        name_of[c->name]);
    uint64_t now = test_now_ns();
    if (r && r->type == REDIS_REPLY_ARRAY && r->elements == 2) {
        bool ours = r->element[0]->type == REDIS_REPLY_STRING &&
                    strcmp(r->element[0]->str, token) == 0;
        uint64_t left_ms = (uint64_t)r->element[1]->integer + 1;
        count(COUNT_CHECKED);
        if (ours && deadline > now + left_ms * UINT64_C(1000000))
            count(COUNT_PAST);
        if (!ours && deadline > now)
            count(COUNT_GONE);
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
    return kind < 4 ? c->ttl_ms * 800 : dice_below(&c->dice, 6000);
}

static inline int wait_ms(struct contender *c)
{
    int kind = dice_below(&c->dice, 10);
    return kind == 0 ? 0 : kind < 4 ? dice_below(&c->dice, 300) : LONG_WAIT_MS;
}

/* disturbed: the server, the network or its own stop may have kept it. */
static inline void note_wait(struct contender *c, int rc, uint64_t took_ms,
    int waited_ms, bool disturbed)
{
    c->slot->results[rc < 0 || rc > 6 ? 7 : rc]++;
    /* REFUSED: a server that has just restarted still loads its file. */
    if (rc < 0 && rc != NXL_E_UNREACHABLE && rc != NXL_E_REFUSED) {
        count(COUNT_ERRORS);
        snprintf(board->said, sizeof(board->said), "%s",
            c->library->errmsg(c->lock));
    }
    if (disturbed)
        return;
    if (took_ms > c->slot->longest_wait)
        c->slot->longest_wait = took_ms;
    if (rc == NXL_BUSY && waited_ms == LONG_WAIT_MS &&
        c->kind != KIND_NO_LINE && c->kind != KIND_OLD)
        count(COUNT_STARVED);
    if (took_ms > (uint64_t)(waited_ms + TIMEOUT_MS + LATE_CALL_MS))
        count(COUNT_HUNG);
}

static inline void use(struct contender *c, uint64_t asked)
{
    const struct library *l = c->library;
    char token[512];
    struct hold *hold =
        hold_begins(c, asked, l->deadline(c->lock), l->fence(c->lock));
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
    if (c->kind == KIND_BARE)
        bare_release(c, token);
    int rc = l->release(c->lock);
    board->count[COUNT_LOST] += rc == NXL_LOST && c->kind != KIND_BARE;
}

static inline void contend(struct contender *c)
{
    int most = wait_ms(c);
    int stops = board->stops[c->process], server_faults = board->server_faults;
    uint64_t asked = test_now_ns();
    int rc = c->library->acquire(c->lock, most);
    uint64_t took_ms = (test_now_ns() - asked) / 1000000;
    note_wait(c, rc, took_ms, most,
        stops != board->stops[c->process] ||
            server_faults != board->server_faults);
    if (rc == NXL_OK)
        use(c, asked);
    pause_us(dice_below(&c->dice, rc == NXL_OK ? 4000 : 30000));
}

static inline void poll_bare(struct contender *c)
{
    char token[32];
    uint64_t sent = test_now_ns();
    snprintf(token, sizeof(token), "poller-%llu", (unsigned long long)sent);
    if (!bare_up(c))
        return;
    redisReply *r = redisCommand(
        c->bare, "SET %s %s NX PX %d", name_of[c->name], token, TTL_MS);
    bool granted = r && r->type == REDIS_REPLY_STATUS;
    if (r)
        freeReplyObject(r);
    /* Also after no reply: it may have been granted. */
    if (granted) {
        struct hold *hold = hold_begins(c, sent, sent + LEASE_NS(TTL_MS), 0);
        pause_us(dice_below(&c->dice, 3000));
        hold_ends(hold);
    }
    if (granted || !r)
        bare_release(c, token);
    pause_us(1000 + dice_below(&c->dice, 20000));
}

/* ------------------------------------------------------------- a process */

static inline bool goes_on(const struct contender *c)
{
    return board->over <= c->process % 2 && c->slot->holds < HOLDS;
}

static inline void make_lock(struct contender *c)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    c->ttl_ms = dice_below(&c->dice, 11) ? TTL_MS : LONG_TTL_MS;
    options.ttl_ms = c->ttl_ms;
    options.fence = c->name >= FENCED_FROM;
    options.min_hold_ms = dice_below(&c->dice, 9) ? 0 : 40;
    options.retry_min_ms = 5;
    options.retry_max_ms = 25;
    if (c->library->lock_new(&c->lock, c->client, name_of[c->name], &options) !=
        NXL_OK)
        _exit(5);
}

static inline void *contender_run(void *argument)
{
    struct contender *c = argument;
    while (goes_on(c) && c->kind == KIND_POLLER)
        poll_bare(c);
    while (goes_on(c)) {
        make_lock(c);
        for (int i = 0; i < 40 && goes_on(c); i++)
            contend(c);
        c->library->lock_free(c->lock);
    }
    if (c->bare)
        redisFree(c->bare);
    return NULL;
}

static inline struct library old_library(void)
{
    const char *path = getenv("NXLOCK_OLD_LIBRARY");
    void *so = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct library old = this_library;
#define OLD(function) *(void **)&old.function
    if (so) {
        OLD(client_new) = dlsym(so, "nxl_client_new");
        OLD(client_free) = dlsym(so, "nxl_client_free");
        OLD(lock_new) = dlsym(so, "nxl_lock_new");
        OLD(lock_free) = dlsym(so, "nxl_lock_free");
        OLD(acquire) = dlsym(so, "nxl_lock_acquire");
        OLD(extend) = dlsym(so, "nxl_lock_extend");
        OLD(release) = dlsym(so, "nxl_lock_release");
        OLD(deadline) = dlsym(so, "nxl_lock_deadline");
        OLD(token) = dlsym(so, "nxl_lock_token");
        OLD(fence) = dlsym(so, "nxl_lock_fence");
        OLD(errmsg) = dlsym(so, "nxl_lock_errmsg");
    } else if (path) {
        _exit(6);
    }
#undef OLD
    return old;
}

/* Never returns. */
static inline void run_process(
    int process, enum kind kind, const char *url, uint64_t dice)
{
    struct library library = kind == KIND_OLD ? old_library() : this_library;
    struct contender of[THREADS];
    nxl_client *client = NULL;
    char whole[2 * LOCAL_PATH];
    pthread_t twin;
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to what the server closed */
    snprintf(whole, sizeof(whole), "%s?max_ttl_ms=%d&timeout_ms=%d%s", url,
        2 * LONG_TTL_MS, TIMEOUT_MS, kind == KIND_NO_LINE ? "&poll=1" : "");
    if (kind != KIND_POLLER &&
        library.client_new(&client, whole, NULL) != NXL_OK)
        _exit(4);
    for (int i = 0; i < THREADS; i++)
        of[i] = (struct contender){.library = &library,
            .client = client,
            .slot = &board->slot[process * THREADS + i],
            .kind = kind,
            .process = process,
            .name = (process + i) % NAMES,
            .dice = dice + (uint64_t)i};
    if (kind == KIND_TWINS &&
        pthread_create(&twin, NULL, contender_run, &of[1]) != 0)
        _exit(7);
    contender_run(&of[0]);
    if (kind == KIND_TWINS)
        pthread_join(twin, NULL);
    if (client)
        library.client_free(client);
    _exit(0);
}

#endif
