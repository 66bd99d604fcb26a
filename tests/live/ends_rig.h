/* SPDX-License-Identifier: MIT */
/* A cell of the table in test_handle_ends.c: what it crosses, and how its
 * handle comes to hold the lock. */
#ifndef NXLOCK_TESTS_ENDS_RIG_H
#define NXLOCK_TESTS_ENDS_RIG_H

#include "api_rig.h"

enum { TTL_MS = 3000, EXTENDED_MS = 5000, HEIR_MS = 30000, MIN_HOLD_MS = 1500 };

/* ------------------------------------------------------------------ a cell */

enum ending {
    RELEASE,
    FREE,
    CLIENT_FREE,
    ACQUIRE_AGAIN,
    ADOPT,
    EVENT_NOT_TAKEN,
    PROCESS_STOPPED,
    ENDINGS
};
static const char *const endings[] = {"release", "free", "client free",
    "acquire again", "adopt", "free, event not taken", "process stopped, free"};

enum fate { VALID, EXPIRED, REFUSED, UNANSWERED, SILENCE, MAX_HOLD, FATES };
static const char *const fates[] = {"valid", "expired", "refused by the server",
    "an extend unanswered", "lost by silence", "ended by max_hold_ms"};

struct cell {
    enum ending ending;
    enum fate fate;
    bool heir, renew, min_hold, fence, loop;
    bool begun; /* by nxl_once_begin() */
    size_t servers;
    char name[16];
    nxl_client *client;
    nxl_lock *lock;
    nxl_lock *other; /* the heir's, or the stranger's */
    char token[256];
};

/* Clients of the other programs, by number of servers. */
static nxl_client *others[QUORUM_MAX], *thirds[QUORUM_MAX];

/* The event of its grant is not taken. */
static inline bool untaken(const struct cell *c)
{
    return c->loop && c->ending == EVENT_NOT_TAKEN && c->fate != REFUSED &&
           c->fate != UNANSWERED;
}

static inline bool sensible(const struct cell *c)
{
    if (c->begun && c->servers > 1)
        return false;
    if (c->begun && c->heir && untaken(c)) /* none has learned of the token */
        return false;
    if ((c->fate == SILENCE || c->fate == MAX_HOLD) && !c->renew)
        return false;
    if (c->ending == PROCESS_STOPPED && c->fate == VALID)
        return false;
    /* In the blocking API only the loss of a renewed lock is an event. */
    if (c->ending == EVENT_NOT_TAKEN && !c->loop)
        return c->fate == SILENCE || c->fate == MAX_HOLD;
    return true;
}

/* Until the call on the cell's lock is over. */
static inline int await(const struct cell *c, int rc)
{
    while (rc == NXL_PENDING) {
        nxl_event event = next_event(c->client);
        if (event.operation != NXL_OP_HOLD)
            rc = event.result;
    }
    return rc;
}

/* A call on the cell's lock through the cell's API. */
#define CELL(c, ...) await(c, BEGIN(__VA_ARGS__))

static inline void connect_to_all(const struct cell *c)
{
    do {
        int rc = await(c, begin_inspect(c->lock));
        assert_true(rc == NXL_FREE || rc == NXL_E_UNREACHABLE);
    } while (!connected_to_all(c->client));
}

/* Lets the client notice how late it is. */
static inline void notice(const struct cell *c)
{
    if (c->loop)
        turn(c->client, 0);
    else
        connect_most(c->client);
}

/* ------------------------------------------------------------ the acquire */

static inline int begin_acquire(const struct cell *c, int64_t wait_ms)
{
    if (!c->begun)
        return BEGIN(acquire, c->lock, wait_ms);
    return by_loop ? nxl_once_begin_start(c->lock, NULL, wait_ms)
                   : nxl_once_begin(c->lock, NULL, wait_ms);
}

static inline void await_grant(const struct cell *c)
{
    nxl_stats stats = {0};
    while (stats.grants == 0) {
        turn(c->client, 20);
        nxl_client_stats(c->client, &stats, sizeof(stats));
    }
}

/* Its record: "begun", ...; "" if there is none. */
static const char *record_of(const struct cell *c)
{
    static char state[16];
    char key[40], line[1024];
    snprintf(key, sizeof(key), "{%s}:once", c->name);
    state[0] = '\0';
    if (redis_get(servers, key, line, sizeof(line)))
        sscanf(line, "once1 %15s", state);
    return state;
}

#endif
