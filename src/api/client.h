/* SPDX-License-Identifier: MIT */
/*
 * The handles from inside. One mutex guards everything in a client and its
 * locks but what is marked otherwise.
 */
#ifndef NXLOCK_API_CLIENT_H
#define NXLOCK_API_CLIENT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <nxlock.h>

#include "base/entropy.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/token.h"
#include "core/acquire.h"
#include "core/fence.h"
#include "core/round.h"
#include "core/standing.h"
#include "net/request.h"

/* Keys in the watch above those of servers. */
enum { KEY_WAKE = MAX_SERVERS, KEY_TIMER };

enum door { DOOR_NONE, DOOR_BLOCKING, DOOR_LOOP };

/* Of a lock that is none, see ask.h; not in enum nxl_operation. */
#define OP_ASK ((enum nxl_operation)100)

/* One acquire, extend, ... from its start to its result. */
struct operation {
    enum nxl_operation kind;
    bool running;
    unsigned late; /* an inspection's servers still listened to, by bits */
    union {
        struct acquire acquire; /* NXL_OP_ACQUIRE */
        struct round round;     /* all others */
        struct question *ask;   /* OP_ASK */
    } machine;
    struct timer timer;
    struct list node; /* loop door: events. blocking door: followers */
    int result;       /* once it is not running */
    uint64_t started_at;
    bool lapsed;       /* RELEASE: its lease was over when it began */
    unsigned attempts; /* ACQUIRE: rounds that were told of */
    /* ACQUIRE with a fencing number: what each server gave for the present
     * token; and the second part, once it runs. */
    uint64_t drawn[MAX_SERVERS];
    bool fencing;
    struct fence fence;
    /* Blocking door, a thread that sleeps while another one reads. */
    sem_t wake;
    bool asleep, promoted;
};

enum warning_kind {
    WARNING_WEAK,     /* by timestamps */
    WARNING_MINORITY, /* servers without a vote that somebody has to mend */
    WARNING_YOUNG,    /* ... or only to be waited for */
    WARNINGS
};

/* What is thought of a server; see voters.h. */
struct voter {
    struct standing standing;
    unsigned judged;    /* the connection that was */
    uint64_t judged_at; /* or looked at again */
    unsigned twin;      /* STANDING_TWIN: the same server's number */
};

/* The thread that renews; see keeper.h. */
struct keeper {
    pthread_t thread;
    bool running, joinable, stop;
    int fd;                /* a timer; -1: none was needed yet */
    uint64_t armed;        /* what it is set to */
    uint64_t needed_until; /* when nothing is kept */
};

struct nxl_client {
    pthread_mutex_t mutex;
    int cancel_state; /* see client_lock() */
    struct entropy *entropy; /* its fork mark is read without the mutex */
    enum door door;
    bool closed;
    size_t refs; /* itself and its locks */
    int wake_fd; /* interrupts poll() in another thread */

    unsigned server_count;
    struct server *servers;
    struct voter voters[MAX_SERVERS];
    uint64_t timeout_ns;
    uint64_t salt; /* random, for jitter */
    uint32_t max_ttl_ms, drift_ppm;
    bool guard; /* against restarts */
    struct slice prefix;

    struct timers timers;
    struct list locks;
    struct list events;    /* loop door: operations that are over */
    struct timers holds;   /* of locks that are kept alive; see hold.h */
    struct list losses;    /* of these, not told yet */
    int loss_fd;           /* readable while there are some; -1: not made */
    size_t kept, renewing; /* how many are; answers that are due */
    struct keeper keeper;
    struct nxl_stats stats;
    nxl_tracer tracer; /* NULL: nobody listens */
    void *tracer_arg;
    _Atomic bool interrupted; /* by nxl_client_interrupt() */
    struct list followers; /* blocking door: operations that sleep */
    bool led;              /* a thread is the reader */
    bool waiting;          /* and sleeps */
    uint64_t wait_until;   /* until then */

    nxl_warning warning; /* NULL: nobody listens */
    void *warning_arg;
    unsigned warned; /* of what, by bits: nobody is told twice */
    struct text warning_text[WARNINGS];
    _Atomic unsigned warning_due; /* by bits; read without the mutex */

    struct watch watch; /* all descriptors */
    int timer_fd;       /* in it after nxl_client_fd(); -1 before */
    uint64_t timer_at;  /* what it is set to; 0: it has to be set */

    struct text message;
};

/* What one server made of the present operation, or of the last one. */
struct note {
    enum { NOTE_NONE, NOTE_ASKED, NOTE_YES, NOTE_NO, NOTE_FAULT } kind;
    enum fault fault;
    char words[192];        /* FAULT: for people */
    struct nxl_holder seen; /* YES of an inspection */
};

struct nxl_lock {
    struct nxl_client *client;
    struct list node; /* in client->locks */
    void *user;
    char *label; /* NULL: none */
    uint32_t ttl_ms;
    uint64_t retry_first_ns, retry_most_ns;

    struct verb verb; /* of the operation in progress; key always set */
    char token[TOKEN_MAX + 1];
    size_t token_len;
    bool token_foreign; /* adopted: lay it out anew for the next acquire */
    char *key;
    char *counter; /* the key fencing numbers are drawn from; NULL: none are */
    _Atomic uint64_t fence; /* the last one. Read without the mutex. */

    uint32_t min_hold_ms;
    uint64_t max_hold_ns; /* NEVER: as long as it is wanted */
    uint64_t granted_at;   /* 0: it has been counted */
    uint64_t stands_until; /* by min_hold_ms, also when it is held no more */
    uint64_t ends;         /* by max_hold_ms; NEVER */
    struct hold *hold;    /* it is kept alive; NULL: it is not */
    struct hold *serves;  /* this is the agent of one that is; NULL */

    bool holding; /* granted and not yet released or found lost */
    bool unsure;  /* an extend of its own may be applied later */
    bool ran_out; /* see lease_lapse() */
    _Atomic uint64_t deadline; /* ns; 0: not held. Read without the mutex. */

    struct operation operation;
    struct nxl_holder seen; /* by the last inspect; size 0: none made */
    struct note *notes;     /* one a server, of several; else NULL */
    unsigned reached;       /* where its token may stand, by bits */
    char target[sizeof((struct nxl_holder *)0)->value]; /* of a break */
    size_t target_len;
    struct kept_commands kept;
    struct text message;
    struct request requests[]; /* one a server */
};

/* Takes the mutex and keeps the thread from ending (pthread_cancel) in one of
 * the system calls that follow: nobody would ever get the mutex again. */
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

/* A lock was granted: what is to be told of that for the first time, the caller
 * of the library is going to be told ... */
void client_note_grant(const struct nxl_lock *lock);
/* ... here, where nothing is held. */
void client_warn(struct nxl_client *client);

static inline struct nxl_lock *lock_of(const struct operation *op)
{
    return list_entry(op, struct nxl_lock, operation);
}

static inline bool client_forked(const struct nxl_client *client)
{
    return entropy_forked(client->entropy);
}

#endif
