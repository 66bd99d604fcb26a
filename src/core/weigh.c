/* SPDX-License-Identifier: MIT */
/*
 * Weighs answers and messages by the eligibility of the server.
 *
 * Invariant: only outcome_counts() and weigh_has_vote() ask whether the server
 * has a vote, and they are called only where its vote matters. The other
 * functions add what does not depend on the vote: copies, and the Sentinels.
 */
#include "core/weigh.h"

#include "core/confirm.h"
#include "model/guard.h"

/* The outcome to count for a server without a vote. */
static struct outcome refusal(
    const struct eligibility *e, bool unsure, uint64_t now)
{
    enum fault fault = eligibility_fault(e, now);
    if (fault == FAULT_NONE) /* the quarantine ended between two readings */
        fault = FAULT_RESTARTED;
    return (struct outcome){
        .kind = OUTCOME_FAULT,
        .fault = fault,
        .unsure = unsure,
        .left_ms = LEFT_UNKNOWN,
    };
}

/* It took so long that the server may have been replaced meanwhile. */
static bool is_late(
    const struct eligibility *e, uint64_t alive_at, uint64_t now)
{
    return e->failover && !lineage_is_current(alive_at, now);
}

static struct outcome late_grant(void)
{
    return (struct outcome){
        .kind = OUTCOME_FAULT,
        .fault = FAULT_TIMEOUT,
        .unsure = true,
        .left_ms = LEFT_UNKNOWN,
        .text = slice_of("its answer took more than a second, in which another "
                         "server may have been promoted"),
    };
}

bool weigh_confirmed(const struct eligibility *e, uint64_t sent_at)
{
    return !e->failover || !e->sentinels ||
           confirm_covers(e->confirmed_at, sent_at);
}

bool weigh_needs_confirmation(enum verb_kind verb)
{
    const struct verb_traits *traits = &verb_traits[verb];
    if (!traits->may_grant)
        return traits->needs_confirmation && guarded(GUARD_CONFIRM_EXTENDS);
    /* In line a message may come where the answer does. */
    return traits->needs_confirmation && guarded(GUARD_CONFIRM_GRANTS) &&
           (guarded(GUARD_CONFIRM_MESSAGES) || !traits->waits_in_line);
}

static bool outcome_is_confirmed(const struct eligibility *e,
    enum verb_kind verb, const struct outcome *outcome)
{
    return !weigh_needs_confirmation(verb) || !outcome_wrote(outcome) ||
           weigh_confirmed(e, outcome->sent_at);
}

/* It was applied, but perhaps at a former primary. */
static struct outcome unconfirmed(void)
{
    return (struct outcome){
        .kind = OUTCOME_FAULT,
        .fault = FAULT_UNCONFIRMED,
        .unsure = true,
        .applied = true,
        .left_ms = LEFT_UNKNOWN,
        .text = slice_of("no majority of the Sentinels has named this primary "
                         "in the 2 seconds before"),
    };
}

/* Does it count that this server has our token? */
static bool mine_counts(
    const struct eligibility *e, enum verb_kind verb, uint64_t now)
{
    enum verb_mine mine = verb_traits[verb].mine;
    if (mine == MINE_IF_VOTING)
        return eligibility_votes(e, now) || !guarded(GUARD_ADOPT);
    return mine == MINE_ANYWHERE || e->reason == REASON_NONE;
}

/* A server that may have lost data cannot vouch for absence, so "free" and new
 * grants need its vote. */
static bool outcome_counts(const struct eligibility *e, enum verb_kind verb,
    const struct outcome *outcome, uint64_t now)
{
    switch (outcome->kind) {
    case OUTCOME_GRANTED:
        return eligibility_votes(e, outcome->sent_at);
    case OUTCOME_MINE:
        return mine_counts(e, verb, now);
    case OUTCOME_SEEN:
        return e->reason == REASON_NONE;
    case OUTCOME_FREE:
        return eligibility_votes(e, now);
    case OUTCOME_NONE:
    case OUTCOME_BUSY:
    case OUTCOME_RECORDED:
    case OUTCOME_NOT_MINE:
    case OUTCOME_FAULT:
        break;
    }
    return true;
}

bool weigh_copies(const struct copies_terms *terms, enum verb_kind verb,
    const struct outcome *outcome, struct outcome *instead)
{
    const struct copies *c = &outcome->copies;
    bool wanted = terms->replicas > 0 || terms->synced;
    if (!wanted || !outcome_wrote(outcome) || !verb_traits[verb].needs_copies)
        return true;
    if (c->known &&
        (c->replicas >= terms->replicas || !guarded(GUARD_COPIES)) &&
        (c->synced || !terms->synced))
        return true;
    *instead = (struct outcome){
        .kind = OUTCOME_FAULT,
        .fault = FAULT_COPIES,
        .unsure = true,
        .applied = true,
        .left_ms = LEFT_UNKNOWN,
        .sent_at = outcome->sent_at,
    };
    return false;
}

bool weigh_has_vote(
    const struct eligibility *e, uint64_t now, struct outcome *instead)
{
    if (eligibility_votes(e, now))
        return true;
    *instead = refusal(e, false, now);
    return false;
}

/* Does the server count for this answer, and did it answer in time? */
static bool weigh(const struct eligibility *e, enum verb_kind verb,
    const struct outcome *outcome, uint64_t alive_at, uint64_t now,
    struct outcome *instead)
{
    if (!outcome_counts(e, verb, outcome, now))
        *instead = refusal(e, outcome->kind == OUTCOME_GRANTED, now);
    else if (outcome->kind == OUTCOME_GRANTED && is_late(e, alive_at, now))
        *instead = late_grant();
    else
        return true;
    instead->sent_at = outcome->sent_at;
    return false;
}

bool weigh_outcome(const struct eligibility *e, enum verb_kind verb,
    const struct outcome *outcome, uint64_t alive_at, uint64_t now,
    struct outcome *instead)
{
    /* Whoever guards against failovers, or follows them, waits for the end of
     * one. */
    if ((e->failover || e->sentinels) && outcome->kind == OUTCOME_FAULT &&
        outcome->fault == FAULT_NOT_PRIMARY) {
        *instead = *outcome;
        instead->fault = FAULT_DEMOTED;
        return false;
    }
    if (!eligibility_matters(e))
        return true;
    if (!weigh(e, verb, outcome, alive_at, now, instead))
        return false;
    if (outcome_is_confirmed(e, verb, outcome))
        return true;
    *instead = unconfirmed();
    instead->sent_at = outcome->sent_at;
    return false;
}

bool weigh_extension_after_change(const struct eligibility *e,
    enum verb_kind verb, const struct outcome *outcome, uint64_t deadline,
    struct outcome *instead)
{
    if (!verb_traits[verb].extends_lease || outcome->kind != OUTCOME_MINE ||
        !e->failover)
        return true;
    /* The latest time at which the former primary can grant a lock: a request
     * counts if it was sent up to CONFIRM_VALID_MS after a majority named that
     * server, and its answer if it comes LINEAGE_SLACK_MS later at most. */
    uint64_t last = deadline_after_ms(
        e->primary_changed_at, CONFIRM_VALID_MS + LINEAGE_SLACK_MS);
    if (deadline >= last || !guarded(GUARD_MOVED))
        return true;
    *instead = unconfirmed();
    instead->fault = FAULT_NAMED_LATE;
    instead->sent_at = outcome->sent_at;
    instead->text = slice_of(
        "the Sentinels named this primary so shortly before the end of the "
        "lease that the former primary may also grant the lock");
    return false;
}

bool weigh_message(const struct eligibility *e, uint64_t sent_at,
    uint64_t alive_at, uint64_t now)
{
    const struct outcome grant = {.kind = OUTCOME_GRANTED, .sent_at = sent_at};
    struct outcome instead;
    if (guarded(GUARD_CONFIRM_MESSAGES) && !weigh_confirmed(e, sent_at))
        return false;
    return !eligibility_matters(e) ||
           weigh(e, VERB_STAY, &grant, alive_at, now, &instead);
}
