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
#include "core/confirm.h"
#include "core/lease.h"
#include "model/guard.h"
#include "model/verb.h"

#define CHECK_AGAIN NS_PER_S

/* A lease and its drift, in whole seconds, rounded up. */
static uint64_t lease_s(uint32_t ttl_ms, const struct eligibility_terms *terms)
{
    uint64_t ns = ms_to_ns(ttl_ms) + lease_drift_ns(ttl_ms, terms->drift_ppm);
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

static uint64_t longest_s(const struct eligibility_terms *terms)
{
    bool longer = terms->longer_ttl_ms && guarded(GUARD_LONGER);
    return lease_s(longer ? terms->longer_ttl_ms : terms->max_ttl_ms, terms);
}

/* The former primary may have granted the longest lease some time after another
 * one was promoted, or was named by a majority of the Sentinels. */
static uint64_t slack_s(const struct eligibility_terms *terms)
{
    if (!terms->failover)
        return 0;
    return (terms->sentinels ? CONFIRM_VALID_MS : LINEAGE_SLACK_MS) / 1000;
}

uint64_t eligibility_needed_s(const struct eligibility_terms *terms)
{
    return longest_s(terms) + slack_s(terms);
}

/* For clients that have seen no longer lease. */
static uint64_t usually_needed_s(const struct eligibility_terms *terms)
{
    return lease_s(terms->max_ttl_ms, terms) + slack_s(terms);
}

/* After a coordinated failover: it has all data of the former primary. What a
 * lease loses because the new primary's clock is ahead must be less than half
 * of its margin for drift; those that are too short for that must have expired.
 */
static uint64_t coordinated_s(const struct eligibility *e,
    const struct server_info *info, const struct eligibility_terms *terms)
{
    int64_t lead = lineage_clock_lead(&e->lineage, info);
    if (lead > INT64_MAX / 2)
        return eligibility_needed_s(terms);
    uint64_t ttl_ms =
        lead > 0 ? lease_ttl_of_drift_ms(2 * (uint64_t)lead, terms->drift_ppm)
                 : 0;
    ttl_ms = later(ttl_ms, LINEAGE_SLACK_MS);
    return earlier((ttl_ms + 999) / 1000, eligibility_needed_s(terms));
}

/* uptime_in_seconds is the difference of two times truncated to seconds: only
 * one second less has certainly passed. */
static uint64_t certain_age_s(const struct server_info *info)
{
    return info->uptime_s > 0 ? (uint64_t)info->uptime_s - 1 : 0;
}

static void postpone_vote(struct eligibility *e, uint64_t votes_at,
    uint64_t since, enum quarantine_cause cause)
{
    if (votes_at <= e->votes_at || !guarded(GUARD_RESTARTS))
        return;
    e->votes_at = votes_at;
    e->since = since;
    e->cause = cause;
}

/* It has been what it is for age seconds: the rest of needed has to pass. */
static void quarantine_rest(struct eligibility *e, uint64_t needed,
    uint64_t age, enum quarantine_cause cause, uint64_t now)
{
    if (age < needed)
        postpone_vote(e, deadline_after(now, (needed - age) * NS_PER_S),
            deadline_before(now, age * NS_PER_S), cause);
}

/* Where only the age of the process counts. */
static void quarantine_by_uptime(struct eligibility *e,
    const struct server_info *info, const struct eligibility_terms *terms,
    uint64_t now)
{
    /* Its clock was already set back when it was judged before: go on counting
     * its age from then. */
    if (info->uptime_was_negative && e->uptime_was_negative && info->run_id[0])
        return;
    if (info->uptime_s >= 0)
        quarantine_rest(
            e, longest_s(terms), certain_age_s(info), CAUSE_STARTED, now);
}

/* It has a second history, which is not that of an RDB file: one that has just
 * started has read that. */
static bool was_promoted(
    const struct server_info *info, const struct eligibility_terms *terms)
{
    return server_has_second_history(info) &&
           certain_age_s(info) >= usually_needed_s(terms);
}

/* For how long a majority of the Sentinels has named it, at least. One that has
 * started since has lost what it had not written. */
static uint64_t named_age_s(
    const struct server_info *info, bool has_second_history)
{
    return has_second_history && info->named_s > 0
               ? earlier((uint64_t)info->named_s, certain_age_s(info))
               : 0;
}

/* Does it count since when the Sentinels have named it the primary? Another one
 * may have been in between, though this one has never ceased to be one. */
static bool naming_counts(const struct eligibility_terms *terms)
{
    return terms->sentinels && terms->failover && guarded(GUARD_NAMED);
}

/* Leases of a primary that was named before may be as old as that. */
static void quarantine_named(struct eligibility *e,
    const struct server_info *info, const struct eligibility_terms *terms,
    enum lineage_news news, uint64_t now)
{
    uint64_t named = info->named_s > 0 ? (uint64_t)info->named_s : 0;
    if (naming_counts(terms) && news != LINEAGE_REPLICA &&
        news != LINEAGE_COORDINATED && (named > 0 || guarded(GUARD_AGE)))
        quarantine_rest(
            e, eligibility_needed_s(terms), named, CAUSE_NAMED, now);
}

/* Nothing that it tells would be different if it had just been promoted. Of
 * several servers a majority would have to be. */
static bool hides_promotions(
    const struct server_info *info, const struct eligibility_terms *terms)
{
    bool tells = info->replid && info->replid[0];
    return terms->failover && !terms->several_servers &&
           !naming_counts(terms) && !tells && guarded(GUARD_AGE);
}

/* What the history of its data demands; without the guard against failovers,
 * only whether it is another process. */
static void quarantine(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, enum lineage_news news, uint64_t now)
{
    uint64_t needed = eligibility_needed_s(terms);
    /* A promotion loses writes though the servers write to disk. Leases of the
     * former primary are as old as the promotion. */
    bool second_history = terms->failover && server_has_second_history(info);
    bool lossless = terms->durable && !second_history;
    uint64_t age =
        second_history && !naming_counts(terms) && info->primary_s > 0
            ? (uint64_t)info->primary_s
            : 0;
    /* By its replicas, or by the Sentinels if they know it longer. */
    uint64_t proven_age = later(age, named_age_s(info, second_history));
    bool promoted = terms->failover && was_promoted(info, terms);
    enum quarantine_cause cause = promoted ? CAUSE_PROMOTED : CAUSE_CHANGED;
    if (news == LINEAGE_COORDINATED && !terms->failover)
        news = LINEAGE_PROMOTED;
    switch (news) {
    case LINEAGE_REPLICA:
        return;
    case LINEAGE_COORDINATED:
        quarantine_rest(
            e, coordinated_s(e, info, terms), 0, CAUSE_COORDINATED, now);
        return;
    case LINEAGE_PROMOTED: /* it has another server's data, AOF or not */
        quarantine_rest(e, needed, age, cause, now);
        return;
    case LINEAGE_REPLACED:
        quarantine_rest(e, lossless ? 0 : needed, proven_age, cause, now);
        return;
    case LINEAGE_UNSEEN:
        if (second_history)
            quarantine_rest(e, needed, age, cause, now);
        break;
    case LINEAGE_FIRST_OLD:
        if (second_history && guarded(GUARD_AGE))
            quarantine_rest(e, needed, proven_age,
                promoted ? CAUSE_OLD_PROMOTION : cause, now);
        break;
    case LINEAGE_FIRST:
        if (hides_promotions(info, terms))
            quarantine_rest(e, needed, 0, CAUSE_UNKNOWN, now);
        break;
    case LINEAGE_SAME:
        break;
    }
    if (!lossless)
        quarantine_by_uptime(e, info, terms, now);
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
    if (server_is_replica(info))
        return REASON_REPLICA;
    if (terms->durable && info->no_aof)
        return REASON_NO_AOF;
    if (terms->guard && (info->refused || info->uptime_s < 0))
        return REASON_NO_INFO;
    return REASON_NONE;
}

/* Has another primary been met than before, or the same one after it had been a
 * replica? */
static bool is_failover(enum lineage_news news, const struct server_info *info,
    const struct eligibility_terms *terms)
{
    switch (news) {
    case LINEAGE_COORDINATED:
    case LINEAGE_PROMOTED:
    case LINEAGE_UNSEEN:
        return true;
    case LINEAGE_REPLACED:
        return was_promoted(info, terms);
    case LINEAGE_REPLICA:
    case LINEAGE_FIRST:
    case LINEAGE_FIRST_OLD:
    case LINEAGE_SAME:
        break;
    }
    return false;
}

void eligibility_judge(struct eligibility *e, const struct server_info *info,
    const struct eligibility_terms *terms, bool duplicate, uint64_t now)
{
    enum lineage_news news = lineage_update(&e->lineage, info);
    bool was_unfit = eligibility_unfit(e);
    e->judged_at = now;
    e->reason = reason_of(info, terms, duplicate);
    e->failovers += is_failover(news, info, terms);
    /* Slots that were elsewhere may have come back empty, and an active replica
     * has what others wrote: whenever it was promoted. */
    if (terms->guard && was_unfit && !eligibility_unfit(e))
        quarantine_rest(e, eligibility_needed_s(terms), 0, CAUSE_CHANGED, now);
    if (terms->guard) {
        quarantine(e, info, terms, news, now);
        quarantine_named(e, info, terms, news, now);
    }
    e->needed_s = eligibility_needed_s(terms);
    e->longer_ttl_ms = terms->longer_ttl_ms;
    e->uptime_was_negative = info->uptime_was_negative;
    e->slots = info->slots;
    e->vote_is_required =
        terms->several_servers || terms->guard || terms->durable;
    e->failover = terms->failover;
    e->several_servers = terms->several_servers;
    e->sentinels = terms->sentinels;
}

/* Has a majority named it all the while? To name another server and then this
 * one again takes the Sentinels longer than CONFIRM_VALID_MS. */
static bool named_on(
    const struct eligibility *e, const struct sentinel_view *named)
{
    uint64_t latest = deadline_after_ms(e->named_since, CONFIRM_VALID_MS);
    return confirm_covers(e->confirmed_at, named->asked_at) ||
           named->since <= latest;
}

bool eligibility_gives_way_to(
    const struct eligibility *e, const struct sentinel_view *named)
{
    return confirm_covers(e->confirmed_at, named->asked_at);
}

void eligibility_hear_former(
    struct eligibility *e, const struct server_info *info)
{
    lineage_hear_former(&e->lineage, info);
}

void eligibility_named(
    struct eligibility *e, const struct sentinel_view *named, bool moves)
{
    bool known = !moves && e->named_since;
    bool goes_on = known && named_on(e, named);
    e->named_since =
        goes_on ? earlier(e->named_since, named->since) : named->since;
    if (known && !goes_on && e->sentinels && e->failover &&
        guarded(GUARD_NAMED))
        postpone_vote(e, deadline_after(named->since, e->needed_s * NS_PER_S),
            named->since, CAUSE_NAMED);
    if (moves && !eligibility_gives_way_to(e, named))
        lineage_forget_former(&e->lineage);
    e->primary_changed_at =
        moves ? later(named->since, e->confirmed_at) : e->primary_changed_at;
    e->confirmed_at =
        moves ? named->asked_at : later(e->confirmed_at, named->asked_at);
}

int64_t eligibility_named_s(const struct eligibility *e, uint64_t now)
{
    return e->named_since ? (int64_t)(elapsed(e->named_since, now) / NS_PER_S)
                          : 0;
}

int64_t eligibility_coordinated_s(const struct eligibility *e,
    const struct eligibility_terms *terms, uint64_t now)
{
    bool began_now = e->since == now; /* the quarantine, in this judgement */
    if (e->cause != CAUSE_COORDINATED || !began_now)
        return -1;
    uint64_t left_s =
        (deadline_left(e->votes_at, now) + NS_PER_S - 1) / NS_PER_S;
    /* The others may have seen no longer lease. */
    uint64_t needed_s = usually_needed_s(terms);
    return needed_s < left_s ? -1 : (int64_t)(needed_s - left_s);
}

void eligibility_lengthen(
    struct eligibility *e, const struct eligibility_terms *terms, uint64_t now)
{
    e->needed_s = eligibility_needed_s(terms);
    if (!terms->guard || now >= e->votes_at || e->cause == CAUSE_COORDINATED)
        return;
    uint64_t needed_s = e->cause == CAUSE_STARTED ? longest_s(terms)
                                                  : eligibility_needed_s(terms);
    e->longer_ttl_ms = terms->longer_ttl_ms;
    postpone_vote(
        e, deadline_after(e->since, needed_s * NS_PER_S), e->since, e->cause);
}

bool eligibility_votes(const struct eligibility *e, uint64_t now)
{
    return e->reason == REASON_NONE && now >= e->votes_at;
}

uint64_t eligibility_quarantine(const struct eligibility *e, uint64_t now)
{
    return e->reason == REASON_NONE ? deadline_left(e->votes_at, now) : 0;
}

enum fault eligibility_fault(const struct eligibility *e, uint64_t now)
{
    switch (e->reason) {
    case REASON_NONE:
        break;
    case REASON_NO_INFO:
        return FAULT_NO_INFO;
    case REASON_REPLICA:
        return e->failover || e->sentinels ? FAULT_DEMOTED : FAULT_NOT_PRIMARY;
    case REASON_ACTIVE_REPLICA:
        return FAULT_ACTIVE_REPLICA;
    case REASON_CLUSTER:
        return FAULT_CLUSTER;
    case REASON_NO_AOF:
        return FAULT_NOT_DURABLE;
    case REASON_DUPLICATE:
        return FAULT_DUPLICATE;
    }
    if (now >= e->votes_at)
        return FAULT_NONE;
    return e->cause == CAUSE_STARTED || e->cause == CAUSE_CHANGED
               ? FAULT_RESTARTED
               : FAULT_PROMOTED;
}

bool eligibility_recheck(struct eligibility *e, uint64_t now)
{
    if (e->reason == REASON_NONE ||
        now < deadline_after(e->judged_at, CHECK_AGAIN))
        return false;
    e->judged_at = now;
    return true;
}
