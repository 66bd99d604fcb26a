/* SPDX-License-Identifier: MIT */
/*
 * One simulated world: model servers and clients on a model network, their
 * troubles, and the checker. world_run() plays one seed to its end; what it
 * does follows from the options alone.
 */
#ifndef NXLOCK_SIM_WORLD_H
#define NXLOCK_SIM_WORLD_H

#include "sim/alarm.h"
#include "sim/checker.h"
#include "sim/client.h"
#include "sim/guards.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/server.h"
#include "sim/trouble.h"

struct options {
    uint64_t seed;
    unsigned servers;  /* 1 ... MAX_SERVERS */
    unsigned troubles; /* allowed, as a mask */
    unsigned checked;  /* invariants, as a mask */
    unsigned least_grants, least_troubles;
    bool fences; /* in every world, not in every second one */
    bool aloud;
};

#define OPTIONS_INIT                                                           \
    {                                                                          \
        .seed = 1, .servers = 1, .troubles = CLEAN_TROUBLES,                   \
        .checked = ALL_INVARIANTS, .least_grants = 50, .least_troubles = 5     \
    }

/* What a seed decides about its world once. */
struct setting {
    unsigned processes, workers, names;
    uint32_t min_ttl_ms, max_ttl_ms;
    uint32_t drift_ppm;
    uint64_t timeout_ns;  /* of a call */
    uint64_t patience_ns; /* with a connection that does not answer */
    uint64_t travel_ns, slow_ns, linger_ns, think_ns;
    bool kill_allowed;   /* CLIENT KILL, by the servers' ACL */
    bool fences;         /* each acquire asks for a fencing number */
    uint64_t trouble_ns; /* between two troubles, on average */
};

struct world {
    struct options options;
    struct setting setting;
    uint64_t now;
    struct backoff dice;
    struct timers timers;
    struct history history;
    struct checker checker;
    struct troubles faults;
    struct model_server server[MAX_SERVERS];
    struct process process[PROCESSES_MAX];
    bool stopping;
    unsigned turns; /* alarms since time has passed */
    uint64_t grants, strays, fences, renewals, losses;
};

struct report {
    unsigned broken; /* the invariant; 0: none */
    bool too_few;    /* grants or troubles, within its time */
    uint64_t grants, fences, renewals, losses, troubles, strays, hash, steps, virtual_ns;
    uint64_t each[TROUBLES];
};

/* Plays a world. What went wrong is printed to out (NULL: not at all). */
struct report world_run(const struct options *options, FILE *out);

#endif
