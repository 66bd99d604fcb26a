/* SPDX-License-Identifier: MIT */
/*
 * A service with a primary, replicas and Sentinels, which are 3 or 5 processes
 * that watch it. When a majority of them finds the primary down, one of them
 * promotes a replica, and the others learn that later. Each server, Sentinel
 * and client can be parted from the others.
 *
 * The world's only server is the one that a majority of the Sentinels names;
 * the others are former primaries, or replicas, at addresses of their own.
 *
 * A client asks the Sentinels as src/client/sentinel_watch.c does
 * (sentinels_watch.c).
 */
#ifndef NXLOCK_SIM_SENTINELS_H
#define NXLOCK_SIM_SENTINELS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/confirm.h"
#include "sim/alarm.h"
#include "sim/client.h"
#include "sim/server.h"
#include "sim/trouble.h"

#define SENTINELS_MAX 5
#define NODES_MAX 4
#define ASKED_MAX (SENTINELS_MAX + 2)
#define NO_NODE NODES_MAX

/* Who is on the same side can talk; who is on no side can talk to all. */
enum side { SIDE_NONE, SIDE_ONE, SIDE_OTHER };

struct node {
    struct model_server server;
    unsigned number;
    enum side side;
    unsigned follows; /* a primary: itself */
    /* It has got nothing since it was parted from the one that it follows. */
    bool stale;
    unsigned followers; /* that it takes for connected, a bit for each */
};

/* What it says. */
struct said {
    unsigned node;
    uint64_t for_ms; /* the role was reported for so long */
    bool same;       /* ... by the node that is named */
};

struct model_sentinel {
    unsigned index;
    enum side side;
    uint64_t period_ns;
    unsigned named;
    int64_t since;        /* it has named it since then */
    uint64_t epoch;       /* of that */
    uint64_t answered_at; /* when the node was seen to be a primary last */
    uint64_t stopped_until;
    /* What it has promised, as a voter. */
    uint64_t seen_epoch, votes_from;
    uint64_t tries_at; /* not before */
    /* While it is the leader. */
    enum { LEADS_NOT, LEADS, PROMOTES, PROMOTED } leads;
    bool hands_over; /* the primary has, or will */
    unsigned chosen;
    uint64_t leads_epoch, leads_until, goes_on_at;
    uint64_t other_since[NODES_MAX]; /* seen as a primary as well; or 0 */
    struct alarm turn;
};

/* What a client asks one Sentinel, whose answer is a view of confirm. */
struct asked {
    struct process *process;
    unsigned sentinel;
    enum { ASKED_NOT, ASKED_LEFT, ASKED_COMES } state;
    uint64_t asked_at, fails_at;
    struct said said; /* COMES */
    struct alarm alarm;
};

/* The former primary is asked whether it has handed over. */
struct former {
    struct process *process;
    enum { FORMER_NOT, FORMER_LEFT, FORMER_COMES } state;
    unsigned node;
    uint64_t until, asked_at;
    struct message said; /* COMES */
    struct alarm alarm;
};

/* As struct sentinel_watch in src/client. */
struct watch {
    struct sentinel_views confirm;
    struct asked asked[ASKED_MAX];
    uint64_t looked_at;
    bool undecided;
    unsigned node;           /* the address; NO_NODE: none yet */
    bool unlocated, located; /* located: just now */
    uint64_t lost_at;
    struct former former;
    struct alarm alarm;
};

struct sentinels {
    unsigned count, nodes;
    struct model_sentinel list[SENTINELS_MAX];
    struct node node[NODES_MAX];
    unsigned current; /* which node the world's server is */
    enum side process_side[PROCESSES_FEW];
    uint64_t whole_at; /* the parts are whole again then; 0: they are */
    struct alarm heals;
    uint64_t down_after_ns, pause_ns, fix_ns;
    uint64_t calm_since; /* all agree since then; 0: they do not */
    struct watch watch[PROCESSES_FEW];
};

void sentinels_make_room(struct world *w);
void sentinels_start(struct world *w);
void sentinels_end(struct world *w);

/* Until when nothing passes between the process and the node of s, or that
 * Sentinel; 0: it does. */
uint64_t sentinels_parted(const struct world *w, const struct process *p,
    const struct model_server *s);
uint64_t sentinels_cut_off(
    const struct world *w, const struct process *p, unsigned sentinel);
/* What it says just now. */
struct said sentinels_say(const struct world *w, unsigned sentinel);
/* How many replicas s takes for connected. */
unsigned sentinels_replicas(
    const struct world *w, const struct model_server *s);
/* Since when all is well; NEVER: it is not. */
uint64_t sentinels_calm_since(struct world *w);

/* False: there is nothing to strike. */
bool sentinels_trouble(struct world *w, enum trouble trouble);

/* -------------------------------- a client's watch: sentinels_watch.c */

void watch_start(struct world *w, struct process *p);
void watch_end(struct world *w, struct process *p);
/* Decides, asks, sets the alarm. True: its link can do more now. */
bool watch_step(struct world *w, struct process *p);
/* The link is down. */
void watch_lost(struct world *w, struct process *p);
/* May it connect? */
bool watch_located(const struct world *w, const struct process *p);
/* Where to. */
struct model_server *watch_server(struct world *w, const struct process *p);

#endif
