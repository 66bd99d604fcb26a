/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a server may vote; core/weigh.h decides what its answers
 * count for. A server that restarted, or was promoted, may have forgotten locks
 * which other clients still rely on; so it has no vote until every lock that it
 * or its predecessor may have granted has expired (the quarantine). What a
 * server says about itself at each new connection is compared with what was
 * known of it before (core/lineage.h).
 *
 * Invariant: a server whose process cannot be shown to be older than max_ttl
 * and its drift (or a longer lease, if one was seen) has no vote until that
 * time has passed since it was first seen; one whose process changed while this
 * client was running has none for that time from then on, because it may be
 * another server in the place of the old one. The same holds for a primary that
 * was promoted, where the client guards against failovers, unless the former
 * primary has said that nothing was lost.
 */
#ifndef NXLOCK_CORE_ELIGIBILITY_H
#define NXLOCK_CORE_ELIGIBILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lineage.h"
#include "model/fault.h"

struct eligibility_terms {
    uint32_t max_ttl_ms, drift_ppm;
    uint32_t longer_ttl_ms; /* a lease was seen that is so long; 0: none that is
                             * longer than max_ttl_ms */
    bool several_servers;   /* it is one of several servers */
    bool guard;             /* against restarts */
    bool failover;          /* and against promotions; only with guard */
    bool sentinels;         /* Sentinels say which server it is. With failover
                             * a majority of them has to confirm what counts */
    bool durable;           /* the URL says that it never loses data */
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

/* Why it has no vote before votes_at. */
enum quarantine_cause {
    CAUSE_STARTED,       /* its process is young */
    CAUSE_CHANGED,       /* it was a different process, or had other data */
    CAUSE_PROMOTED,      /* it was promoted, and this client has seen it */
    CAUSE_OLD_PROMOTION, /* it was promoted before, nobody knows when */
    CAUSE_UNKNOWN,       /* it does not tell whether it was promoted */
    CAUSE_NAMED,      /* Sentinels name it; they may have named another one */
    CAUSE_COORDINATED /* CAUSE_PROMOTED, and nothing was lost */
};

struct eligibility {
    enum eligibility_reason reason;
    struct lineage lineage;
    uint64_t judged_at; /* or when it was last rechecked */
    /* The quarantine, which goes on whatever reasons come and go. */
    uint64_t votes_at; /* never becomes earlier */
    uint64_t since; /* roughly when its process started or was promoted; if it
                     * changed: when that was seen */
    enum quarantine_cause cause;
    uint32_t longer_ttl_ms; /* of the terms by which it lasts */
    unsigned failovers; /* that were seen: another primary was met than before,
                         * or the same one after it had been a replica */
    bool uptime_was_negative; /* of the info that was judged last: see
                                 server_info */
    int slots;                /* likewise */
    uint64_t needed_s;        /* eligibility_needed_s(), by the terms */
    bool vote_is_required;    /* locks need its vote, by the terms */
    bool failover;            /* likewise */
    bool several_servers;     /* likewise */
    bool sentinels;           /* likewise */
    /* When a majority of the Sentinels has named this server last, and since
     * when it has, as far as is known; since when, at the latest, it has been
     * named instead of another one that this client had followed (see
     * core/confirm.h). 0: never. */
    uint64_t confirmed_at, named_since, primary_changed_at;
};

/* No lock belongs there, even with one server and whatever its name. */
static inline bool eligibility_unfit(const struct eligibility *e)
{
    return e->reason == REASON_ACTIVE_REPLICA || e->reason == REASON_CLUSTER;
}

/* Does it matter whether the server has a vote? A single server need not vote,
 * unless it is guarded or durable; but it must not be one where no lock
 * belongs. */
static inline bool eligibility_matters(const struct eligibility *e)
{
    return e->vote_is_required || eligibility_unfit(e);
}

/* Judges the server by info, and updates *e, which is zero at first. duplicate:
 * another server of the list has this run_id. */
void eligibility_judge(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, bool duplicate, uint64_t now);

/* How long it has no vote after it was promoted, or its process was replaced.
 */
uint64_t eligibility_needed_s(const struct eligibility_terms *terms);

struct sentinel_view;

/* A majority of the Sentinels names the server, as confirm_primary() says.
 * moves: not the one that was named before. If another one may have been named
 * in between, which has granted locks that this one knows nothing of, it has no
 * vote until they have expired. */
void eligibility_named(
    struct eligibility *e, const struct sentinel_view *named, bool moves);

/* This server was followed so far, and a majority has now named another one,
 * *named: did it name this one until at most 2 s before that? */
bool eligibility_gives_way_to(
    const struct eligibility *e, const struct sentinel_view *named);

/* What the former primary, which a majority named until now, has said since. */
void eligibility_hear_former(
    struct eligibility *e, const struct server_info *info);

/* For how long a majority has named it, at least, in whole seconds; 0: unknown.
 */
int64_t eligibility_named_s(const struct eligibility *e, uint64_t now);

/* A lease was seen that is longer than all before: terms->longer_ttl_ms. A
 * quarantine that is not over waits for leases of that length too. */
void eligibility_lengthen(
    struct eligibility *e, const struct eligibility_terms *terms, uint64_t now);

/* After eligibility_judge() at the same time: the former primary has just been
 * seen to have lost nothing, so this server counts as having been a primary
 * for so many seconds. -1: it has not. */
int64_t eligibility_coordinated_s(const struct eligibility *e,
    const struct eligibility_terms *terms, uint64_t now);

/* May an acquire be sent to it now? */
bool eligibility_votes(const struct eligibility *e, uint64_t now);

/* How long it has no vote yet because it restarted or was promoted; 0 if it has
 * one, or lacks it for another reason. In ns. */
uint64_t eligibility_quarantine(const struct eligibility *e, uint64_t now);

/* Why it has no vote; FAULT_NONE: it has one. */
enum fault eligibility_fault(const struct eligibility *e, uint64_t now);

/* True at most once a second while there is a reason that a person can fix:
 * then make a new connection and judge it. */
bool eligibility_recheck(struct eligibility *e, uint64_t now);

#endif
