/* SPDX-License-Identifier: MIT */
/*
 * Decides whether what a server says counts for a lock. Whatever is to reach
 * the state machine of a lock passes here first: each answer, and each message
 * that the lock was handed over. Column .mine of verb_traits has what differs
 * between verbs. A further condition of an answer belongs here too, so that it
 * holds for all of them.
 *
 * With the guard against failovers a grant also has to be answered soon: a
 * former primary that was stopped, and is woken, may grant a lock whose key has
 * expired there, and was extended at its successor.
 *
 * Invariant: a server that may have forgotten locks, or on which no lock can
 * rely, proves neither that a lock was granted nor that it is free.
 */
#ifndef NXLOCK_CORE_WEIGH_H
#define NXLOCK_CORE_WEIGH_H

#include "core/eligibility.h"
#include "model/verb.h"

/* What a write needs before it counts: wait_replicas and wait_aof. */
struct copies_terms {
    unsigned replicas;
    bool synced;
};

/* Is what verb has written safe enough? Asked of each outcome, before
 * weigh_outcome(). False: *instead is the fault to count instead of it, without
 * a text. It was applied, so it is unsure. */
bool weigh_copies(const struct copies_terms *terms, enum verb_kind verb,
    const struct outcome *outcome, struct outcome *instead);

/* May verb be sent to the server now? False: *instead is the outcome to count,
 * without a text. */
bool weigh_has_vote(
    const struct eligibility *e, uint64_t now, struct outcome *instead);
static inline bool weigh_may_send(const struct eligibility *e,
    enum verb_kind verb, uint64_t now, struct outcome *instead)
{
    return !verb_traits[verb].may_grant || !eligibility_matters(e) ||
           weigh_has_vote(e, now, instead);
}

/* Does this outcome of verb count? e->confirmed_at is up to date. alive_at: the
 * time of the last sign of life that had come before it (core/lineage.h).
 * False: *instead is the fault to count instead of it. It has a text if the
 * answer was late or is not confirmed by the Sentinels; for a server without a
 * vote the caller adds one. */
bool weigh_outcome(const struct eligibility *e, enum verb_kind verb,
    const struct outcome *outcome, uint64_t alive_at, uint64_t now,
    struct outcome *instead);

/* Does an extension count, of a lease that has lasted until deadline? The
 * former primary does not know of the extension, and may grant locks for some
 * seconds after the Sentinels have named this server. So the extension does not
 * count if the lease would have ended within these seconds: the former primary
 * could grant the lock to another client then. False: as weigh_outcome(). */
bool weigh_extension_after_change(const struct eligibility *e,
    enum verb_kind verb, const struct outcome *outcome, uint64_t deadline,
    struct outcome *instead);
static inline bool weigh_extension(const struct eligibility *e,
    enum verb_kind verb, const struct outcome *outcome, uint64_t deadline,
    struct outcome *instead)
{
    return !e->primary_changed_at ||
           weigh_extension_after_change(e, verb, outcome, deadline, instead);
}

/* Does a message count by which the lock is handed over to a token in line? It
 * counts as a grant in answer to the request by which the token waits, which
 * was sent at sent_at (line_last_sent_at()); alive_at as above.
 * False: the next answer decides. */
bool weigh_message(const struct eligibility *e, uint64_t sent_at,
    uint64_t alive_at, uint64_t now);

/* Does the answer to this verb count only if a majority of the Sentinels, if
 * there are any, has named the server? */
bool weigh_needs_confirmation(enum verb_kind verb);

/* Has a majority of the Sentinels, if there are any, named the server soon
 * enough before that was sent? */
bool weigh_confirmed(const struct eligibility *e, uint64_t sent_at);

#endif
