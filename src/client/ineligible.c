/* SPDX-License-Identifier: MIT */
/* Says in words why a server has no vote, and what a failover means. */
#include "client/ineligible.h"

#include "base/deadline.h"
#include "model/verb.h"

static void add_seconds(struct text *text, uint64_t seconds)
{
    text_add_duration(text, seconds * (NS_PER_S / NS_PER_MS), true);
}

static void explain_cluster(const struct eligibility *e, struct text *text)
{
    text_add(text, "a node of a Redis Cluster that ");
    if (e->slots == 0)
        text_add(text, "serves no slots");
    else if (e->slots > 0)
        text_addf(text, "serves %d of %d slots, so it refuses other names",
            e->slots, CLUSTER_SLOTS);
    else
        text_add(text, "does not say which slots it serves (if it serves all "
                       "of them, allow CLUSTER NODES, ACL: +cluster|nodes)");
}

static void explain_cause(
    const struct eligibility *e, uint64_t now, struct text *text)
{
    switch (e->cause) {
    case CAUSE_STARTED:
        text_add(text, e->uptime_was_negative
                           ? "its clock was set back after it started, so "
                             "its age is unknown and is counted from "
                           : "started ");
        break;
    case CAUSE_CHANGED:
        text_add(text, "restarted, promoted or replaced ");
        break;
    case CAUSE_PROMOTED:
    case CAUSE_COORDINATED:
        text_add(text, "promoted ");
        break;
    case CAUSE_NAMED:
        text_add(text, "named as the primary ");
        break;
    case CAUSE_UNKNOWN:
        text_add(text, "it does not tell whether it was promoted, as Redis 4.0 "
                       "and later do, and was first seen ");
        break;
    case CAUSE_OLD_PROMOTION:
        text_add(text, "promoted at least ");
        break;
    }
    add_seconds(text, elapsed(e->since, now) / NS_PER_S);
    if (e->cause == CAUSE_COORDINATED) {
        text_add(text, " ago, with all locks");
        return;
    }
    text_add(text, " ago; it may have forgotten locks");
    if (e->longer_ttl_ms) {
        text_add(text, ", some of which last for ");
        text_add_duration(text, e->longer_ttl_ms, true);
    }
}

static void explain_quarantine(
    const struct eligibility *e, uint64_t now, struct text *text)
{
    explain_cause(e, now, text);
    text_add(text, e->several_servers ? "; its vote counts again in "
                                      : "; it grants locks again in ");
    add_seconds(text, deadline_left(e->votes_at, now) / NS_PER_S + 1);
}

void ineligible_failover(const struct eligibility *e, uint64_t seen_at,
    uint64_t now, struct text *text)
{
    text_add(text, "a failover was seen: ");
    if (e->votes_at <= seen_at) {
        text_add(text, "the new primary was promoted so long ago that all "
                       "locks which it may have forgotten have expired, so no "
                       "lock has to wait");
    } else if (now < e->votes_at) {
        explain_quarantine(e, now, text);
    } else {
        explain_cause(e, now, text);
        text_add(text, e->several_servers ? "; its vote did not count until "
                                          : "; it granted no locks until ");
        add_seconds(text, elapsed(e->votes_at, now) / NS_PER_S);
        text_add(text, " ago");
    }
}

void ineligible_explain(
    const struct eligibility *e, uint64_t now, struct text *text)
{
    switch (e->reason) {
    case REASON_NONE:
        if (now >= e->votes_at)
            return;
        explain_quarantine(e, now, text);
        break;
    case REASON_NO_INFO:
        text_add(text, "INFO is refused or does not report the uptime, so "
                       "a restart would go unnoticed: no vote (ACL: +info)");
        break;
    case REASON_REPLICA:
        text_add(text, "a replica");
        break;
    case REASON_ACTIVE_REPLICA:
        text_add(text, "an active replica of another server: both grant "
                       "locks, and each overwrites the other's keys, so two "
                       "clients can hold one lock");
        break;
    case REASON_CLUSTER:
        explain_cluster(e, text);
        break;
    case REASON_NO_AOF:
        text_add(text, "durable=1, but its AOF is off (aof_enabled:0)");
        break;
    case REASON_DUPLICATE:
        text_add(text, "the same server (run_id)");
        break;
    }
}
