/* SPDX-License-Identifier: MIT */
/*
 * One simulated world: model servers and clients on a model network, their
 * troubles, and the checker. world_run() plays one seed to its end; what
 * it does follows from the options alone.
 */
#ifndef NXLOCK_SIM_WORLD_H
#define NXLOCK_SIM_WORLD_H

#include "sim/alarm.h"
#include "sim/checker.h"
#include "sim/client.h"
#include "sim/guards.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/progress.h"
#include "sim/server.h"
#include "sim/stranger.h"
#include "sim/trouble.h"

struct setting;

/* What can be left out of a world: a trouble, or that a worker begins. */
#define EVENTS_MAX 8192
struct events {
    size_t count;
    uint64_t id[EVENTS_MAX];
};
#define EVENT_TROUBLE(n) ((uint64_t)(n) << 8 | 0xff)
/* The first 16 processes have the numbers that they had before there were
 * crowds, so that a seed goes on telling the same story. */
#define EVENT_BEGIN(process, worker, n)                                        \
    ((uint64_t)((process) >> 4) << 56 | (uint64_t)(n) << 8 |                   \
        (uint64_t)((process)&15) << 4 | (uint64_t)(worker))

/* What programs do, and what befalls them, beside locks of one holder. */
struct world_kind {
    const char *name;
    bool once;      /* programs do work that must be done once */
    bool crowd;     /* many wait for a name, and strangers poll beside them */
    bool permits;   /* several hold a lock */
    bool readers;   /* ... and some want it alone, who poll */
    bool several;   /* handles have several names */
    bool failover;  /* replicas take over */
    bool replicas;  /* ... and clients want them to have what they write */
    bool sentinels; /* ... and Sentinels decide that */
};

extern const struct world_kind world_kinds[]; /* the first: only locks */
/* NULL: there is none of that name. */
const struct world_kind *world_kind(const char *name);

struct options {
    uint64_t seed;
    unsigned servers;  /* 1 ... MAX_SERVERS */
    unsigned troubles; /* allowed, as a mask */
    unsigned checked;  /* invariants, as a mask */
    unsigned least_grants, least_troubles;
    bool fences; /* in every world, not in every second one */
    const struct world_kind *kind;
    bool aloud;
    const struct events *only; /* no others happen; NULL: all do */
    struct events *happened;   /* those that do are added; NULL */
    uint64_t lasts_ns;         /* so long, whatever was in it; 0 */
    /* A test plays the programs, in this setting; NULL: it is drawn. */
    const struct setting *setting;
};

#define OPTIONS_INIT                                                           \
    {                                                                          \
        .seed = 1, .servers = 1, .troubles = CLEAN_TROUBLES,                   \
        .checked = ALL_INVARIANTS, .least_grants = 50, .least_troubles = 5,    \
        .kind = world_kinds                                                    \
    }

/* What a seed decides about its world once. */
struct setting {
    unsigned processes, workers, names;
    uint32_t min_ttl_ms, max_ttl_ms;
    uint32_t drift_ppm;
    uint64_t timeout_ns;  /* of a call */
    uint64_t patience_ns; /* with a connection that does not answer */
    uint64_t travel_ns, slow_ns, linger_ns, think_ns;
    bool kill_allowed; /* CLIENT KILL, by the servers' ACL */
    bool fences;       /* each acquire asks for a fencing number */
    /* One server: so many of a hundred workers wait in line, the others poll.
     * How their clients are told. */
    unsigned in_line;
    enum { LISTENING, LISTENING_DENIED, LISTENING_ELSEWHERE } listening;
    /* One server: programs do work once; how, by names. */
    bool once;
    enum { WORK_HALTS, WORK_RETRIES, WORK_CHECKS } work[NAMES_MAX];
    uint64_t trouble_ns; /* between two troubles, on average */
    /* One server: a crowd waits in line; so many programs outside it ask for
     * its names; and once the server's clock may be set back by many seconds.
     */
    bool crowd;
    unsigned strangers;
    bool far_back;
    /* Locks that several have. So many of a hundred are exclusive, and so many
     * shared; the others are permits, with one of two limits: one server. How
     * often nobody joins the holders; how many one script grants (0: as many as
     * it does). */
    bool permits;
    unsigned exclusive, sharing;
    uint32_t limit[2];
    int64_t pause_every_ms;
    unsigned batch;
    /* Many share a lock for a short time, one after the other; so many
     * processes have a worker that wants it alone. Nobody waits in line. */
    bool readers;
    unsigned writers;
    unsigned groups; /* in each process, with MEMBERS_MAX workers each */
    bool failover;   /* replicas take over */
    /* The replicas have data, and so many of so many must have a write. */
    bool replicated;
    unsigned wait_replicas, replicas;
    /* So many Sentinels watch so many servers; 0: there are none. */
    unsigned sentinels, nodes;
};

/* What was in a world, or in many. */
struct world_sum {
    uint64_t grants, fences, renewals, losses, troubles, strays;
    uint64_t lined;    /* grants after a wait in line */
    uint64_t handed;   /* tokens, to an heir */
    uint64_t expired;  /* leases whose handle ended too late for a release */
    uint64_t beside;   /* grants of shared locks and permits */
    uint64_t alone;    /* grants of an exclusive lock, with readers */
    uint64_t together; /* grants of several names */
    /* In lines: gaps, grants to strangers, JOINs and STAYs. */
    uint64_t gaps, turns_outside, asked;
    /* What became of work that must be done once. */
    uint64_t begun, unbegun, acts, late, done, in_doubt;
    uint64_t steps;
};

/* The most that there was at once, or that somebody waited. */
struct world_most {
    uint64_t holders, in_line;
    uint64_t starved_ms; /* that I21 saw */
    uint64_t waited;     /* that I6 saw, in % of its bound */
};

struct world {
    struct options options;
    struct setting setting;
    uint64_t now;
    struct backoff dice, common_dice; /* those of an event, and all others' */
    struct timers timers;
    struct history history;
    struct checker checker;
    struct progress progress;
    struct troubles faults;
    struct model_server *server; /* as many as the options say */
    struct list formers;         /* that replicas have replaced */
    struct sentinels *sentinels; /* NULL: there are none */
    struct process process[PROCESSES_MAX];
    struct worker *workers; /* of all processes */
    struct stranger stranger[STRANGERS_MAX];
    bool stopping;
    unsigned begins[PROCESSES_MAX][WORKERS_MAX]; /* of all their lives */
    unsigned turns;    /* alarms since time has passed */
    uint64_t attempts; /* to do work once */
    struct world_sum sum;
    struct world_most most;
};

struct report {
    unsigned broken; /* the invariant; 0: none */
    char why[200];   /* ... in a sentence */
    bool too_few;    /* grants or troubles, unless it was told how long */
    struct world_sum sum;
    struct world_most most;
    uint64_t hash, virtual_ns;
    uint64_t each[TROUBLES];
};

/* Does that event happen? Draws from dice of its own from then on, so that it
 * is the same one whatever else is left out; until event_over(). */
bool event_happens(struct world *w, uint64_t id);
void event_over(struct world *w);

/* A world that a test plays itself: it begins; so much time passes, and true
 * unless an invariant is broken; it ends. */
void world_start(struct world *w, const struct options *options);
bool world_pass(struct world *w, uint64_t ns);
void world_finish(struct world *w);

/* Plays a world. What went wrong is printed to out (NULL: not at all). */
struct report world_run(const struct options *options, FILE *out);
/* What is broken, in a line. */
void report_print(
    const struct report *report, const struct options *options, FILE *out);

#endif
