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
#ifndef NXLOCK_CLIENT_SENTINEL_WATCH_H
#define NXLOCK_CLIENT_SENTINEL_WATCH_H

#include "base/deadline.h"
#include "client/former_primary.h"
#include "client/nodes.h"
#include "core/confirm.h"

/* The servers that it connects to, at most: the Sentinels, and a former
 * primary.
 */
#define SENTINEL_WATCH_SERVERS (CONFIRM_SENTINELS + 1)

/* How often the Sentinels are asked while the primary is up. */
#define SENTINEL_WATCH_EVERY NS_PER_S

struct sentinel;

/* Only sentinel_watch.c changes it. */
struct sentinel_watch {
    struct nodes *nodes;
    struct node *node;
    void (*on_move)(struct nxl_client *client, uint64_t now);
    struct endpoint *endpoint;
    struct former_primary
        former_primary; /* only where the client guards against failovers */
    unsigned count;     /* of list */
    uint64_t polled_at; /* when they were asked last; 0: never */
    struct sentinel *informant; /* was asked for the others; or NULL */
    uint64_t due;   /* when there is something to do for a Sentinel; 0: now */
    bool undecided; /* the last poll has no result yet */
    bool heard;     /* an answer that has not been weighed */
    struct sentinel_views confirm; /* views in the order of the list */
    struct sentinel *list[CONFIRM_SENTINELS];
};

/* Is the primary up, as far as is known? */
static inline bool sentinel_watch_is_settled(const struct sentinel_watch *w)
{
    return w->node->server.state == SERVER_UP &&
           w->node->voter.eligibility.reason != REASON_REPLICA;
}

/* Is there nothing to be sent now, even if a call is under way? So it is in
 * most iterations, which need not call anything else then. */
static inline bool sentinel_watch_is_idle(
    const struct sentinel_watch *w, uint64_t now)
{
    return w->due && sentinel_watch_is_settled(w) &&
           !w->node->server.awaits_sentinels &&
           now < earlier(w->due,
                     deadline_after(w->polled_at, SENTINEL_WATCH_EVERY));
}

/* Watches the service of endpoint, whose address it replaces, for the only
 * node; both outlive it. on_move, which may be NULL, is called when another
 * server has become the primary. NULL: no memory. */
struct sentinel_watch *sentinel_watch_new(struct nodes *nodes,
    struct endpoint *endpoint,
    void (*on_move)(struct nxl_client *client, uint64_t now));
/* Sends nothing. */
void sentinel_watch_free(struct sentinel_watch *w);
/* As server_stop(), for each of them: writes at most SENTINEL_WATCH_SERVERS
 * jobs, and returns how many. */
unsigned sentinel_watch_stop(struct sentinel_watch *w, struct job **callbacks);
/* As server_close_in_child(). */
void sentinel_watch_close_in_child(struct sentinel_watch *w);

/* Is an answer still awaited, so that somebody has to read it? */
bool sentinel_watch_is_asking(const struct sentinel_watch *w, uint64_t now);
/* When it is to ask next. in_use: a call is under way, or a lock is renewed. */
uint64_t sentinel_watch_asks_at(const struct sentinel_watch *w, bool in_use);

/* For the loop, as those of a server. */
uint64_t sentinel_watch_deadline(struct sentinel_watch *w, bool in_use);
void sentinel_watch_ready(
    struct sentinel_watch *w, struct source *source, short revents);
void sentinel_watch_process(struct sentinel_watch *w, uint64_t now);
/* True: something has failed, so sentinel_watch_process() must be called again.
 */
bool sentinel_watch_push(struct sentinel_watch *w, bool in_use, uint64_t now);

/* What Sentinel i of the list says now, for people: *named is the address of
 * the primary; "": it names none, because of *why. */
void sentinel_watch_explain(const struct sentinel_watch *w, unsigned i,
    struct text *named, struct text *why);
/* Is it the one that the client uses? True, too, if that is yet to be found. */
bool sentinel_watch_agrees(const struct sentinel_watch *w, unsigned i);
/* Is it just another address of a host whose Sentinel answers? Not while one is
 * missing of those that the others know: it may be the address of that one. */
bool sentinel_watch_is_spare(const struct sentinel_watch *w, unsigned i);

/* How many Sentinels name the present primary, and how many are listed. */
void sentinel_watch_count(
    const struct sentinel_watch *w, unsigned *naming, unsigned *listed);

#endif
