/* SPDX-License-Identifier: MIT */
/*
 * Contenders for one name, processes that write down on a shared board when
 * they relied on the lock, before they do what ends that: what is read there
 * of one that was killed is true.
 */
#ifndef NXLOCK_TESTS_CHAOS_RIG_H
#define NXLOCK_TESTS_CHAOS_RIG_H

#include <stdatomic.h>

#include "live/classic_rig.h"
#include "live/gate_rig.h"

enum { OURS = 4, CLASSICS = 4, ALL = OURS + CLASSICS };
/* The other programs' lease is no shorter than ours: so a time that one of
 * them writes over ours shortens nothing. */
enum { TTL_MS = 500, CLASSIC_TTL_S = 1, HOLDS = 30000, UPSETS = 4000 };
/* How long a lock may block at the most: for its time, and 4 s more. */
enum { BLOCK_MS = CLASSIC_TTL_S * 1000 + 4000 };
/* A time that is past gives way within that: the scheme's own programs let a
 * second go by. */
enum { NOTICED_MS = 2500 };

struct hold {
    _Atomic uint64_t begin, end;
    int who;
};

/* Of one contender, whichever process it is by now. */
struct contender {
    struct hold hold[HOLDS];
    _Atomic int holds;
    /* When a lock may have been left behind that no hold tells of. */
    uint64_t upset[UPSETS];
    _Atomic int upsets;
    _Atomic int results[8]; /* of acquire: NXL_OK ..., 7: errors */
    _Atomic int lost;       /* releases and extends that came too late */
};

struct board {
    struct contender of[ALL + 1]; /* the last one is who kills them */
    struct gate_tally tally;
    _Atomic bool kill_it[OURS]; /* by its gate's wish */
    _Atomic bool over;
};

static struct board *board; /* shared */
static char gate_path[OURS][LOCAL_PATH];

static inline void pause_us(int us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

static inline void upset(int who)
{
    struct contender *c = &board->of[who];
    if (c->upsets == UPSETS)
        _exit(11);
    c->upset[c->upsets] = test_now_ns();
    c->upsets++;
}

static inline struct hold *hold_begins(int who, uint64_t end)
{
    struct contender *c = &board->of[who];
    struct hold *hold = &c->hold[c->holds];
    if (c->holds == HOLDS)
        _exit(10);
    hold->who = who;
    hold->begin = test_now_ns();
    hold->end = end;
    c->holds++;
    return hold;
}

static inline void hold_ends(struct hold *hold)
{
    uint64_t now = test_now_ns();
    if (now < hold->end)
        hold->end = now;
}

/* Most are short; one in ten is prolonged on the way, and at times one comes
 * back when another one has taken over. */
static inline void one_of_ours(int who, uint64_t *mine, nxl_lock *lock)
{
    struct contender *c = &board->of[who];
    int rc = nxl_lock_acquire(lock, dice_below(mine, 3000));
    if (rc < 0 && rc != NXL_E_UNREACHABLE)
        _exit(30 - rc);
    c->results[rc < 0 || rc > 6 ? 7 : rc]++;
    if (rc != NXL_OK) {
        if (rc != NXL_BUSY)
            upset(who);
        return;
    }
    struct hold *hold = hold_begins(who, nxl_lock_deadline(lock));
    bool longer = dice_below(mine, 10) == 0;
    pause_us(dice_below(mine, longer ? 200000 : 5000));
    if (longer) {
        rc = nxl_lock_extend(lock, 0);
        if (rc == NXL_OK)
            hold->end = nxl_lock_deadline(lock);
        else if (rc == NXL_LOST)
            hold_ends(hold);
        c->lost += rc == NXL_LOST;
        pause_us(dice_below(mine, 200000));
    }
    if (!nxl_lock_held(lock) && rc == NXL_LOST)
        return;
    if (dice_below(mine, 100) == 0)
        test_pause_ms(TTL_MS + 3000);
    hold_ends(hold);
    rc = nxl_lock_release(lock);
    if (rc != NXL_OK)
        upset(who);
    c->lost += rc == NXL_LOST;
    pause_us(dice_below(mine, 3000));
}

static inline void run_ours(int who, uint64_t mine, const char *parameters)
{
    char url[2 * LOCAL_PATH];
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;
    snprintf(url, sizeof(url), "unix://%s?%s", gate_path[who], parameters);
    options.ttl_ms = TTL_MS;
    options.retry_min_ms = 1;
    options.retry_max_ms = 8;
    if (nxl_client_new(&client, url, NULL) != NXL_OK ||
        nxl_lock_new(&lock, client, "k", &options) != NXL_OK)
        _exit(5);
    while (!board->over)
        one_of_ours(who, &mine, lock);
    end(lock, client);
    _exit(0);
}

/* By the host's own clock, on which its times are. */
static inline uint64_t boottime_of(int64_t unix_s)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t left_ns = (unix_s - (int64_t)t.tv_sec) * 1000000000 - t.tv_nsec;
    return (uint64_t)((int64_t)test_now_ns() + left_ns);
}

/* At times it dies, and its time stands; more often as if it had died long
 * ago, so that all see a time in the past at once. */
static inline void classic_parts(int who, uint64_t *mine, struct classic *c)
{
    int way = dice_below(mine, 400);
    if (way == 0)
        upset(who);
    else if (way < 100 && classic_now(c) + 1 < c->end_s)
        classic_send(c, "SET", 1600000000);
    else
        classic_release(c);
}

static inline void run_classic(int who, uint64_t mine)
{
    struct classic c = {
        .c = redisConnectUnix(server.path), .ttl_s = CLASSIC_TTL_S};
    if (!c.c || c.c->err)
        _exit(6);
    while (!board->over) {
        if (classic_try(&c)) {
            struct hold *hold = hold_begins(who, boottime_of(c.end_s - 1));
            pause_us(dice_below(&mine, 6000));
            hold_ends(hold);
            classic_parts(who, &mine, &c);
        }
        pause_us(dice_below(&mine, 12000));
    }
    _exit(0);
}

#endif
