/* SPDX-License-Identifier: MIT */
/*
 * Asks the Sentinels of a service which server is its primary: before each new
 * connection to it, and while a call is under way or a lock is renewed once a
 * second. The address that a majority names is the one that is connected to;
 * when another one is named, the connection ends at once. All calls need the
 * client's mutex.
 *
 * Invariant: while nothing is held, waited for or asked, no Sentinel is sent
 * anything. What counts of what the primary says is decided by core/weigh.h, by
 * the time that is kept up to date here.
 */
#ifndef NXLOCK_CLIENT_WATCH_H
#define NXLOCK_CLIENT_WATCH_H

#include "base/deadline.h"
#include "client/former.h"
#include "client/nodes.h"
#include "core/confirm.h"

/* The servers that it connects to, at most: the Sentinels, and a former
 * primary.
 */
#define WATCH_SERVERS (CONFIRM_SENTINELS + 1)

/* How often the Sentinels are asked while the primary is up. */
#define WATCH_EVERY NS_PER_S

struct sentinel;

/* Only watch.c changes it. */
struct watch {
    struct nodes *nodes;
    struct node *node;
    void (*on_move)(struct nxl_client *client, uint64_t now);
    struct endpoint *endpoint;
    struct former former; /* only where the client guards against failovers */
    unsigned count;       /* of list */
    uint64_t looked_at;   /* 0: never */
    struct sentinel *informant; /* was asked for the others; or NULL */
    uint64_t due;   /* when there is something to do for a Sentinel; 0: now */
    bool undecided; /* the last look has no result yet */
    bool heard;     /* an answer that has not been weighed */
    struct confirm confirm; /* views in the order of the list */
    struct sentinel *list[CONFIRM_SENTINELS];
};

/* Is the primary up, as far as is known? */
static inline bool watch_is_settled(const struct watch *w)
{
    return w->node->server.state == SERVER_UP &&
           w->node->voter.eligibility.reason != REASON_REPLICA;
}

/* Is there nothing to be done before the next look? So it is in most turns,
 * which need not call anything else then. */
static inline bool watch_rests(const struct watch *w)
{
    return w->due && watch_is_settled(w) && !w->node->server.held_back;
}

/* Until when, then. in_use: a call is under way, or a lock is renewed. */
static inline uint64_t watch_rests_until(const struct watch *w, bool in_use)
{
    return in_use ? earlier(w->due, deadline_after(w->looked_at, WATCH_EVERY))
                  : w->due;
}

/* Watches the service of endpoint, whose address it replaces, for the only
 * node; both outlive it. on_move, which may be NULL, is called when another
 * server has become the primary. NULL: no memory. */
struct watch *watch_new(struct nodes *nodes, struct endpoint *endpoint,
    void (*on_move)(struct nxl_client *client, uint64_t now));
/* Sends nothing. */
void watch_free(struct watch *w);
/* As server_stop(), for each of them: writes at most WATCH_SERVERS jobs, and
 * returns how many. */
unsigned watch_stop(struct watch *w, struct job **callbacks);
/* As server_close_in_child(). */
void watch_close_in_child(struct watch *w);

/* Is an answer still awaited, so that somebody has to read it? */
bool watch_is_asking(const struct watch *w, uint64_t now);
/* When it is to ask next. in_use: a call is under way, or a lock is renewed. */
uint64_t watch_asks_at(const struct watch *w, bool in_use);

/* For the turn, as those of a server. */
uint64_t watch_deadline(struct watch *w, bool in_use);
void watch_ready(struct watch *w, struct source *source, short revents);
void watch_turn(struct watch *w, uint64_t now);
/* True: something has failed, so watch_turn() must be called again. */
bool watch_push(struct watch *w, bool in_use, uint64_t now);

/* How many Sentinels name the present primary, and how many are listed. */
void watch_count(const struct watch *w, unsigned *naming, unsigned *listed);

#endif
