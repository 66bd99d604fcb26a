/* SPDX-License-Identifier: MIT */
/*
 * What the end of a call means for the lease: granted, extended, lost or
 * given up.
 *
 * Invariant: a lease is granted or extended only by a quorum; the key of a
 * lease that has expired is left alone.
 */
#include "core/settle.h"

#include "base/deadline.h"
#include "model/guard.h"

void life_end_keeping_key(struct life *l, uint64_t now)
{
    renewal_stop(l->renewal);
    lease_end(&l->lease, now);
}

void life_end_removing_key(struct life *l, uint64_t now)
{
    uint64_t until = l->unseen ? NEVER : lease_ours_until(&l->lease);
    l->clean_begun = l->unseen && guarded(GUARD_UNSEEN);
    if (l->unseen)
        l->unseen = false;
    life_end_keeping_key(l, now);
    if (now >= until)
        return;
    l->to_clean |= l->may_have_token;
    l->clean_until = until;
}

/* TELL ended the lease, but may not have arrived: the key may still be there.
 * A TELL that leaves the key for the minimum hold, or that is about the attempt
 * of another token, removes nothing. */
static bool tell_may_be_lost(const struct life *l, uint64_t now)
{
    bool arrived = l->result == LIFE_OK || l->result == LIFE_LOST;
    return l->call == CALL_TELL && !arrived && l->request_ttl_ms == 0 &&
           !limit_passed(l->not_after, now);
}

void life_end_lease(struct life *l, uint64_t now)
{
    if (l->lease.stored == LEASE_NONE && !tell_may_be_lost(l, now))
        return;
    if (lease_min_left_ms(&l->lease, now) && !l->unseen)
        life_end_keeping_key(l, now);
    else
        life_end_removing_key(l, now);
}

static void start_renewal(struct life *l, uint64_t now)
{
    struct renewal_terms terms = {
        .servers = l->terms.servers,
        .ballots = l->vote.ballots + (size_t)VOTE_BALLOTS * l->terms.servers,
        .ttl_ms = l->terms.ttl_ms,
        .drift_ppm = l->terms.drift_ppm,
        .timeout_ns = l->terms.timeout_ns,
        .copies_ns = l->terms.copies_ns,
    };
    renewal_start(l->renewal, &terms, &l->lease, l->seed, now);
}

static void grant_lease(
    struct life *l, uint64_t deadline, uint32_t min_hold_ms, uint64_t now)
{
    lease_grant(&l->lease, deadline, min_hold_ms, l->terms.max_hold_ns, now);
    if (l->terms.renewed)
        start_renewal(l, now);
}

void life_all_granted(
    struct life *l, bool renewed, uint64_t max_hold_ns, uint64_t now)
{
    if (!renewed) {
        renewal_stop(l->renewal);
    } else if (max_hold_ns != NEVER) {
        lease_limit(&l->lease, deadline_after(now, max_hold_ns));
        renewal_limit(l->renewal, l->lease.ends);
    }
}

/* ------------------------------------------------------- how a call is over */

/* Too many servers are down to say that the lock is busy. Unlike note_holder()
 * of acquire.c, which counts the answers of one round, this also excludes a
 * server whose connection broke while its answer was outstanding. */
static bool too_many_down(const struct life *l)
{
    unsigned able = 0;
    if (l->terms.servers == 1)
        return false;
    for (unsigned i = 0; i < l->terms.servers; i++) {
        bool down = l->terms.peers[i].link == PEER_DOWN;
        able += (l->answered & 1U << i) || ((l->requested & 1U << i) && !down);
    }
    return able < quorum_of(l->terms.servers);
}

/* What a record says. */
static enum life_result result_found(const struct life *l)
{
    static const enum life_result results[] = {
        [FOUND_NOTHING] = LIFE_FREE,
        [FOUND_BEGUN] = LIFE_OK,
        [FOUND_DONE] = LIFE_DONE,
        [FOUND_DOUBT] = LIFE_DOUBT,
        [FOUND_MISMATCH] = LIFE_MISMATCH,
        [FOUND_BUSY] = LIFE_BUSY,
    };
    return results[l->found];
}

static enum life_result result_no(struct life *l)
{
    if (l->call == CALL_FORGET)
        return result_found(l);
    if (l->call != CALL_ACQUIRE || !too_many_down(l))
        return call_traits[l->call].no;
    struct witness w = acquire_witness(&l->vote.acquire);
    w.busy_until = 0;
    l->fault = FAULT_UNREACHABLE;
    return witness_verdict(&w, 0) == VERDICT_UNKNOWN ? LIFE_UNKNOWN
                                                     : LIFE_FAULT;
}

bool life_adoption_failed(const struct life *l, uint64_t now)
{
    return l->vote.round.deadline <= now || l->not_claimed;
}

static enum life_result result_of(struct life *l, const struct effect *status)
{
    l->fault = status->fault;
    switch (status->verdict) {
    case VERDICT_OPEN:
        break;
    case VERDICT_YES:
        return l->call == CALL_READ_RECORD ? result_found(l) : LIFE_OK;
    case VERDICT_RECORDED:
        return result_found(l);
    case VERDICT_NO:
        return result_no(l);
    case VERDICT_EXPIRED:
        return LIFE_LOST;
    case VERDICT_UNKNOWN:
        return LIFE_UNKNOWN;
    case VERDICT_FAULT:
        return LIFE_FAULT;
    case VERDICT_CANCELLED:
        if (!l->no_token)
            return LIFE_CANCELLED;
        l->fault = FAULT_SYSTEM;
        return LIFE_FAULT;
    }
    return LIFE_OK;
}

static enum life_result settle_extend(
    struct life *l, enum life_result result, uint64_t now)
{
    if (result == LIFE_LOST || !lease_extendable(&l->lease, now)) {
        if (result == LIFE_LOST)
            renewal_token_gone(l->renewal, &l->lease, now);
        lease_lose(&l->lease, now);
        return LIFE_LOST;
    }
    if (result == LIFE_OK) {
        lease_extend(&l->lease, l->vote.round.deadline);
        renewal_extended(l->renewal, &l->lease, now);
    }
    return result;
}

/* LOST if the lease had expired when the release began, even if the key was
 * deleted, or if its deadline passed before the release was sent. */
static enum life_result settle_release(
    const struct life *l, enum life_result result, uint64_t now)
{
    bool unsent = result == LIFE_FAULT && l->fault == FAULT_TIMEOUT &&
                  now >= l->not_after;
    return (l->was_over && guarded(GUARD_LAPSED)) || unsent ? LIFE_LOST
                                                            : result;
}

enum life_result life_settle(
    struct life *l, const struct effect *status, uint64_t now)
{
    enum life_result result = result_of(l, status);
    if (l->call == CALL_EXTEND) {
        result = settle_extend(l, result, now);
    } else if (l->call == CALL_RELEASE) {
        result = settle_release(l, result, now);
    } else if (call_traits[l->call].acquires && result == LIFE_OK) {
        grant_lease(l, l->vote.acquire.deadline, l->terms.min_hold_ms, now);
        l->handed_over = l->vote.handed_over;
        l->fence = status->fence;
        if (l->call == CALL_BEGIN)
            l->unseen = true;
    } else if (l->call == CALL_TELL && result == LIFE_LOST) {
        lease_lose(&l->lease, now); /* CLEAR: else it has ended already */
    } else if (l->call == CALL_ADOPT && result == LIFE_OK) {
        if (life_adoption_failed(l, now))
            result = LIFE_LOST;
        else
            grant_lease(l, l->vote.round.deadline, 0, now);
        l->handed_over = false;
    }
    return result;
}

/* ------------------------------------------------------------- afterwards */

bool life_grant_expired(const struct life *l, uint64_t now)
{
    return call_traits[l->call].relies && l->result == LIFE_OK &&
           !lease_held(&l->lease, now) && guarded(GUARD_RECHECK);
}

void life_drop_expired(struct life *l, uint64_t now)
{
    l->result = LIFE_LOST;
    if (l->call == CALL_EXTEND)
        lease_lose(&l->lease, now); /* the renewal will notice the loss */
    else if (l->unseen)
        life_end_removing_key(l, now);
    else
        life_end_keeping_key(l, now);
}

void life_seen(struct life *l)
{
    if (guarded(GUARD_SEEN))
        l->unseen = false;
}
