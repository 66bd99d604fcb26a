/* SPDX-License-Identifier: MIT */
/*
 * I6, progress. Of each waiter of an acquire a clock runs while it has
 * patience left, its process runs, and a quorum of servers answer it at once,
 * may vote for all it knows, and have no key of the name that lasts. The same
 * quorum: where a server is not so for a moment, it counts from then on. A
 * grant of the name, to whomever, sets the clocks of all its waiters to 0.
 * None may come to the bound.
 *
 * A key does not last if it is that of a round which can still be lost: then
 * all that stand in each other's way draw their random delays again. It must
 * be that of a process that runs and reaches a quorum, and so ends its rounds
 * in time, or a cleanup that is under way. What nobody cares for is I5's; it is
 * not taken for one that lasts. All others do: a holder's, also one that is
 * dead or on its way to be told; strays; what a server brought back; and what
 * a process has set that stands still or has lost its servers.
 *
 * Where several hold a lock, it is free for a waiter if its token fits beside
 * those that last, and so do all that are in line, who may come first; over
 * several servers, all that want it, because what one of them has for a round
 * is kept from the others.
 *
 * The bound is made of turns. A turn is the longest delay before a round, the
 * round, and twice the way to a server and back, for what was on its way when
 * the clock began and for the undoing. A round that finds a server silent
 * takes its whole budget: the longest of those that want the name, which is
 * the timeout of a call for who began without connections.
 *
 *   one server: 2 turns. There are no ties; the second turn is for one that
 *   gives up with the key on its way to it. Where programs wait in line, the
 *   longest delay is the one after a fault. Without one, a waiter asks at
 *   least every beat (150 ms here), and every 100 ms if it is first.
 *
 *   several: 3 turns, and 1 for each two workers of the world. Two that tie
 *   do so again if what they draw from 80 to 160 ms differs by less than a
 *   round. The more there are, the more often another one comes in between;
 *   and when a server is silent, so that each round lasts for its budget, one
 *   that is lost is often still there when the next two begin. Each turn more
 *   is several times as rare: of 20000 worlds each of 1, 3, 4 and 5 servers
 *   one came to half of its bound, and none to 52 % of it. Where replicas
 *   take over it is 1 turn for each worker: of three servers the promoted
 *   one has no vote for long, so all need both others, and two that have one
 *   each lose both. Of 100000 such worlds of three servers one came to 83 %
 *   of that. So it is with readers, who all want one name at any time.
 *
 * With readers there is another clock: of who wants the lock alone, while the
 * others share it one after the other. It runs while a quorum answers, and no
 * trouble has been for 4 s; a grant of the lock to one that wants it alone sets
 * it to 0. It may run for 6 s (I21). Of 400 worlds each of 1, 3 and 5 servers
 * one came to 3.7 s.
 */
#ifndef NXLOCK_SIM_PROGRESS_H
#define NXLOCK_SIM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/checker.h"
#include "sim/client.h"
#include "sim/server.h"

struct world;

struct progress {
    uint64_t next_look;
    /* At this look: since when each server answers a process at once, and
     * whether it runs and has a quorum of them. */
    uint64_t reached[PROCESSES_MAX][MAX_SERVERS];
    bool able[PROCESSES_MAX];
    uint64_t granted_at[NAMES_MAX];       /* to anybody */
    uint64_t hung_until[MAX_SERVERS];     /* the longest hang under way */
    bool lasting[MAX_SERVERS][NAMES_MAX]; /* a key that lasts was seen */
    uint64_t free_since[MAX_SERVERS][NAMES_MAX];
    /* The longest budget of those that want it, since it was last granted */
    uint64_t budget_ns[NAMES_MAX];
    /* Where several hold a lock: those whose tokens last; and when a worker
     * was last seen not to fit beside them at a server, or somebody in line. */
    struct held held[MAX_SERVERS][NAMES_MAX];
    uint64_t closed_at[PROCESSES_MAX][WORKERS_MAX][MAX_SERVERS];
    unsigned waited; /* the longest that a clock ran, in % of its bound */
    /* With readers: when a name was last granted to one that wants it alone;
     * the longest that one waited. */
    uint64_t alone_at[NAMES_MAX];
    unsigned starved_ms;
};

void progress_start(struct world *w);
/* Before anything else happens. Leaves no trace in the world. */
void progress_look(struct world *w);
void progress_granted(struct world *w, unsigned name);
void progress_granted_alone(struct world *w, unsigned name);

#endif
