/* SPDX-License-Identifier: MIT */
/*
 * Judges servers by what they say about themselves.
 *
 * Invariant: no number that a server reports can give it a vote before its
 * process is old enough; an age that is unknown is not guessed.
 */
#include "core/eligibility.h"

#include "base/deadline.h"
#include "base/slice.h"
#include "core/lease.h"
#include "model/guard.h"

#define CHECK_AGAIN NS_PER_S

/* The longest lease and its drift, in whole seconds, rounded up. */
static uint64_t needed_s(const struct eligibility_terms *terms)
{
    uint64_t ns = ms_to_ns(terms->max_ttl_ms) +
                  lease_drift_ns(terms->max_ttl_ms, terms->drift_ppm);
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

/* uptime_in_seconds is the difference of two times truncated to seconds: only
 * one second less has certainly passed. */
static uint64_t certain_age_s(const struct server_info *info)
{
    return info->uptime_s > 0 ? (uint64_t)info->uptime_s - 1 : 0;
}

static void postpone_vote(
    struct eligibility *e, uint64_t votes_at, uint64_t since, bool changed)
{
    if (votes_at <= e->votes_at || !guarded(GUARD_RESTARTS))
        return;
    e->votes_at = votes_at;
    e->since = since;
    e->changed = changed;
}

static void quarantine(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, bool changed, uint64_t now)
{
    uint64_t needed = needed_s(terms), age = certain_age_s(info);
    /* Its clock was already set back when it was judged before: go on counting
     * its age from then. */
    if (info->set_back && e->set_back && info->run_id[0] && !changed)
        return;
    if (changed)
        postpone_vote(e, deadline_after(now, needed * NS_PER_S), now, true);
    else if (info->uptime_s >= 0 && age < needed)
        postpone_vote(e, deadline_after(now, (needed - age) * NS_PER_S),
            deadline_before(now, age * NS_PER_S), false);
}

static bool equals(const char *text, const char *what)
{
    return slice_equal(slice_of(text), slice_of(what));
}

static enum eligibility_reason reason_of(const struct server_info *info,
    const struct eligibility_terms *terms, bool duplicate)
{
    if (equals(info->role, "active-replica") && guarded(GUARD_UNFIT))
        return REASON_ACTIVE_REPLICA;
    if (info->cluster && info->slots != CLUSTER_SLOTS && guarded(GUARD_UNFIT))
        return REASON_CLUSTER;
    if (duplicate)
        return REASON_DUPLICATE;
    if (equals(info->role, "slave") || equals(info->role, "replica"))
        return REASON_REPLICA;
    if (terms->durable && info->no_aof)
        return REASON_NO_AOF;
    if (terms->guard && (info->refused || info->uptime_s < 0))
        return REASON_NO_INFO;
    return REASON_NONE;
}

void eligibility_judge(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, bool duplicate, uint64_t now)
{
    bool changed =
        info->run_id[0] && e->run_id[0] && !equals(info->run_id, e->run_id);
    /* A replica has another server's data, and slots that were elsewhere may
     * have come back empty: what it granted itself is gone. */
    bool had_other_data = e->reason == REASON_REPLICA || eligibility_unfit(e);
    if (info->run_id[0]) {
        struct slice id = slice_of(info->run_id);
        memset(e->run_id, 0, sizeof(e->run_id));
        memcpy(e->run_id, id.data,
            id.len < ELIGIBILITY_ID ? id.len : ELIGIBILITY_ID - 1);
    }
    e->judged_at = now;
    e->reason = reason_of(info, terms, duplicate);
    bool has_other_data = e->reason == REASON_REPLICA || eligibility_unfit(e);
    if (had_other_data && !has_other_data && terms->guard)
        quarantine(e, info, terms, true, now);
    else if (terms->guard && !terms->durable)
        quarantine(e, info, terms, changed, now);
    e->set_back = info->set_back;
    e->slots = info->slots;
    e->must_vote = terms->several || terms->guard;
    e->durable = terms->durable;
}

bool eligibility_votes(const struct eligibility *e, uint64_t now)
{
    return e->reason == REASON_NONE && now >= e->votes_at;
}

enum fault eligibility_fault(const struct eligibility *e, uint64_t now)
{
    switch (e->reason) {
    case REASON_NONE:
        break;
    case REASON_NO_INFO:
        return FAULT_NO_INFO;
    case REASON_REPLICA:
        return FAULT_NOT_PRIMARY;
    case REASON_ACTIVE_REPLICA:
        return FAULT_ACTIVE_REPLICA;
    case REASON_CLUSTER:
        return FAULT_CLUSTER;
    case REASON_NO_AOF:
        return FAULT_NOT_DURABLE;
    case REASON_DUPLICATE:
        return FAULT_DUPLICATE;
    }
    return now < e->votes_at ? FAULT_RESTARTED : FAULT_NONE;
}

bool eligibility_recheck(struct eligibility *e, uint64_t now)
{
    if (e->reason == REASON_NONE ||
        now < deadline_after(e->judged_at, CHECK_AGAIN))
        return false;
    e->judged_at = now;
    return true;
}
