/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a server may vote; core/weigh.h decides what its answers
 * count for. One of several servers that restarted may have forgotten locks
 * which other clients still rely on; so it has no vote until every lock that it
 * may have granted before has expired (the restart quarantine). What a server
 * says about itself at each new connection is judged against what was known of
 * it before.
 *
 * Invariant: a server whose process cannot be shown to be older than max_ttl
 * and its drift has no vote until that time has passed since it was first seen;
 * one whose process changed while this client was running has none for that
 * time from then on, because it may be another server in the place of the old
 * one.
 */
#ifndef NXLOCK_CORE_ELIGIBILITY_H
#define NXLOCK_CORE_ELIGIBILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/fault.h"
#include "model/verb.h"

#define ELIGIBILITY_ID 41

/* What a server says about itself in a handshake. */
struct server_info {
    const char *run_id; /* "": unknown */
    const char *role;   /* likewise */
    int64_t uptime_s;   /* -1: unknown */
    bool refused;       /* INFO is not allowed */
    bool no_aof;
    bool set_back; /* the uptime was negative, and counts as 0 */
    bool cluster;  /* a node of a Redis Cluster */
    int slots;     /* that it serves; -1: unknown */
};

struct eligibility_terms {
    uint32_t max_ttl_ms, drift_ppm;
    bool several; /* it is one of several servers */
    bool guard;   /* against restarts */
    bool durable; /* the URL says that it never loses data */
};

/* Why it has no vote until a person changes something. */
enum eligibility_reason {
    REASON_NONE,
    REASON_NO_INFO, /* INFO is refused, or says too little */
    REASON_REPLICA,
    REASON_ACTIVE_REPLICA, /* KeyDB's: it grants locks that others overwrite */
    REASON_CLUSTER,        /* it does not serve all slots, as far as is known */
    REASON_NO_AOF,         /* durable, but it has no AOF */
    REASON_DUPLICATE       /* another one of the list is the same server */
};

struct eligibility {
    enum eligibility_reason reason;
    char run_id[ELIGIBILITY_ID]; /* the latest one that is known */
    uint64_t judged_at;          /* or when it was last rechecked */
    /* The quarantine, which goes on whatever reasons come and go. */
    uint64_t votes_at; /* never becomes earlier */
    uint64_t since;    /* roughly when its process started; if changed: when
                        * that was seen */
    bool changed;      /* it was a different process before */
    bool set_back;     /* of the info that was judged last: see server_info */
    int slots;         /* likewise */
    bool must_vote;    /* locks need its vote, by the terms */
    bool durable;      /* likewise, see the terms */
};

/* No lock belongs there, even with one server and whatever its name. */
static inline bool eligibility_unfit(const struct eligibility *e)
{
    return e->reason == REASON_ACTIVE_REPLICA || e->reason == REASON_CLUSTER;
}

/* Does it matter for that verb whether the server has a vote? A single server
 * need not vote; but it must not be one where no lock belongs, and durable=1 is
 * a condition of a record. */
static inline bool eligibility_matters(
    const struct eligibility *e, enum verb_kind verb)
{
    return e->must_vote || eligibility_unfit(e) ||
           (e->durable && verb_traits[verb].begins_work);
}

/* Judges the server by info, and updates *e, which is zero at first. duplicate:
 * another server of the list has this run_id. */
void eligibility_judge(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, bool duplicate, uint64_t now);

/* May an acquire be sent to it now? */
bool eligibility_votes(const struct eligibility *e, uint64_t now);

/* Why not: FAULT_NONE when it has a vote. */
enum fault eligibility_fault(const struct eligibility *e, uint64_t now);

/* True at most once a second while there is a reason that a person can fix:
 * then make a new connection and judge it. */
bool eligibility_recheck(struct eligibility *e, uint64_t now);

#endif
