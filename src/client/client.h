/* SPDX-License-Identifier: MIT */
/*
 * A client: its nodes, timers, poller and mode. One mutex guards everything
 * in it and in its locks, except what is marked otherwise.
 *
 * Invariant: the clock is read after the mutex was taken (except for what is
 * only shown), so the times by which a client goes never go back, and none is
 * older than the wait for the mutex.
 */
#ifndef NXLOCK_CLIENT_CLIENT_H
#define NXLOCK_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include <nxlock.h>

#include "base/entropy.h"
#include "base/index.h"
#include "base/text.h"
#include "base/timer.h"
#include "client/alarm.h"
#include "client/nodes.h"
#include "core/life.h"

/* A client is used through the blocking API or the event-loop API, never both:
 * the first call decides. */
enum mode { MODE_NONE, MODE_BLOCKING, MODE_LOOP };

enum warning_kind {
    WARNING_WEAK,       /* locked by timestamps */
    WARNING_MINORITY,   /* servers without a vote that a person has to repair */
    WARNING_QUARANTINE, /* servers without a vote that only need time */
    WARNING_RECORDS,    /* a server that may lose records */
    WARNING_LONGER,     /* another program's lease is longer than max_ttl_ms */
    WARNING_UNGUARDED,  /* a failover of the only server would go unnoticed */
    /* A failover was seen: for each one, and worded when it is given. */
    WARNING_FAILOVER,
    WARNINGS
};

struct sentinel_watch;

struct nxl_client {
    pthread_mutex_t mutex;
    int cancel_state;        /* see client_lock() */
    struct entropy *entropy; /* its fork mark is read without the mutex */
    enum mode mode;
    bool closed;
    size_t refs; /* the handle itself, its locks and its queries */
    int wake_fd; /* eventfd that wakes a thread in loop_epoll() */
    struct source wake;

    unsigned server_count; /* of a vote */
    struct nodes nodes;    /* the servers */
    struct sentinel_watch
        *sentinel_watch; /* of the Sentinels that say where the only one is;
                          * NULL: its URL says so */
    struct peer peers[MAX_SERVERS]; /* kept current by client_update_peers() */
    uint64_t timeout_ns;
    uint64_t salt; /* random, for jitter */
    uint32_t max_ttl_ms, drift_ppm;
    uint32_t longer_ttl_ms; /* of another holder's lease that was seen; 0: none
                             * was longer than max_ttl_ms */
    bool guards_restarts;   /* a restarted server has no vote for a while */
    bool guards_failover;   /* nor has one that was promoted */
    bool copies_decided;    /* somebody has written wait_replicas, or 0 */
    struct slice prefix;
    struct slice marker; /* the key of wire/marker.h; owned */

    struct timers timers;   /* of operations that a caller waits for */
    struct timers renewals; /* of renewals */
    struct list locks, queries;
    struct index joined;     /* of the locks, those in line, by their tokens */
    struct list events;      /* MODE_LOOP: calls that are over */
    struct list losses;      /* of renewed locks, not reported yet */
    int loss_fd;             /* readable while there are some; -1: not made */
    size_t renewed_locks;    /* locks that are renewed */
    size_t running_renewals; /* locks with a renewal under way */
    struct alarm alarm;      /* wakes the renewal thread */
    nxl_stats stats;
    nxl_tracer tracer; /* NULL: no callback */
    void *tracer_arg;
    _Atomic bool interrupted; /* by nxl_client_interrupt() */
    /* Acts on `interrupted`. */
    void (*interrupt)(struct nxl_client *client, uint64_t now);
    struct list sleepers;     /* MODE_BLOCKING: calls whose threads sleep */
    bool has_poller_thread;   /* see poller_thread.h */
    bool poller_sleeps;       /* in loop_epoll(), or was woken there since */
    uint64_t poller_wakes_at; /* at the latest */
    struct call
        *polling_call;   /* that thread's; NULL: none, or it has no call */
    unsigned iterations; /* of the loop: changes whenever that thread runs */

    nxl_warning warning; /* NULL: no callback */
    void *warning_arg;
    unsigned warned; /* kinds that were given, by bits: each only once */
    struct text warning_text[WARNING_FAILOVER]; /* of the kinds before it */
    _Atomic unsigned warning_due; /* kinds due, by bits; read without the
                                   * mutex */

    struct poller poller;      /* all descriptors */
    struct poller_set members; /* of the poller */
    int ready_fd; /* always readable; -1 until a poller thread has to be
                     replaced */
    int timer_fd; /* in it after nxl_client_fd(); -1 before */
    struct source timer;
    uint64_t timer_at; /* the time it is set to; 0: it must be set again */

    struct text errmsg;
    struct text lost_errmsg; /* of an operation without memory for it */
};

/* Takes the mutex and disables cancellation of the thread (pthread_cancel): if
 * it ended in a system call that follows, the mutex would stay locked. */
static inline void client_lock(struct nxl_client *client)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&client->mutex);
    client->cancel_state = state;
}

static inline void client_unlock(struct nxl_client *client)
{
    int state = client->cancel_state;
    pthread_mutex_unlock(&client->mutex);
    pthread_setcancelstate(state, NULL);
}

static inline bool client_forked(const struct nxl_client *client)
{
    return entropy_forked(client->entropy);
}

/* The first call decides the mode. False: the client is in the other one. */
bool client_enter(struct nxl_client *client, enum mode mode);

/* Is a call under way, or a lock renewed? */
static inline bool client_in_use(const struct nxl_client *client)
{
    return timers_next(&client->timers) != NEVER || client->renewed_locks > 0;
}

/* Updates peers. */
void client_read_peers(struct nxl_client *client);
/* The same if it is needed: not for a single server. */
static inline void client_update_peers(struct nxl_client *client)
{
    if (client->server_count > 1)
        client_read_peers(client);
}

/* Drops one reference and unlocks; the last one frees. */
void client_unref(struct nxl_client *client);

/* In a fork()ed child: closes the descriptors and touches nothing else, because
 * a thread of the parent may have been changing the memory at the fork. */
void client_close_descriptors(struct nxl_client *client);

/* Frees what has been built so far. */
void client_destroy(struct nxl_client *client);

#endif
