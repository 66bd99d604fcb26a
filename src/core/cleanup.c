/* SPDX-License-Identifier: MIT */
/*
 * Decides what a cancelled request leaves behind, and how a cleanup proceeds
 * until its token is certainly gone.
 *
 * Invariant: a token in use is never deleted; CLIENT KILL is sent only to the
 * process that gave the client id, because a restarted server gives the same
 * ids anew.
 */
#include "core/cleanup.h"

#include <string.h>

#include "base/deadline.h"
#include "model/guard.h"

#define FIRST_INTERVAL (20 * NS_PER_MS)
#define LAST_INTERVAL NS_PER_S

/* ------------------------------------------------ cancelling a request */

static enum cleanup_cause cause_of_acquire(const struct cancelled *r)
{
    switch (r->stage) {
    case CANCEL_UNSENT:
        /* An acquire goes on to its next step only if no step has written. */
        return r->undo && r->may_hold && guarded(GUARD_HELD) ? CLEANUP_TOKEN
                                                             : CLEANUP_NONE;
    case CANCEL_SENT:
        if (r->undo && guarded(GUARD_LATE_UNDO))
            return r->writes ? CLEANUP_ACQUIRE_SENT : CLEANUP_TOKEN;
        if (!r->undo && r->writes && guarded(GUARD_LOST_ACQUIRE))
            return CLEANUP_ACQUIRE_IN_USE;
        return CLEANUP_NONE;
    case CANCEL_LOST:
        return guarded(GUARD_LOST_ACQUIRE) ? CLEANUP_ACQUIRE_LOST
                                           : CLEANUP_NONE;
    case CANCEL_ENDED:
        break;
    }
    /* Its connection was lost: the cleanup under way deletes the key as
     * well. */
    if (r->cleanup && r->cleanup->state != CLEANUP_WATCHING)
        return CLEANUP_NONE;
    bool held = r->may_hold && guarded(GUARD_HELD);
    return r->undo && (!r->never_sent || held) && guarded(GUARD_LOST_ACQUIRE)
               ? CLEANUP_TOKEN
               : CLEANUP_NONE;
}

/* Of a STAY: its token is in line, or holds the lock, whether or not this one
 * was sent; it can do neither later. */
static enum cleanup_cause cause_of_stay(const struct cancelled *r)
{
    return r->undo && r->stage != CANCEL_LOST && guarded(GUARD_LATE_UNDO)
               ? CLEANUP_TOKEN
               : CLEANUP_NONE;
}

static enum cleanup_cause cause_of_release(const struct cancelled *r)
{
    if (!r->undo || r->stage == CANCEL_LOST)
        return CLEANUP_NONE;
    if (r->stage != CANCEL_SENT)
        return guarded(GUARD_LOST_ACQUIRE) ? CLEANUP_TOKEN : CLEANUP_NONE;
    if (!guarded(GUARD_LATE_UNDO))
        return CLEANUP_NONE;
    return r->compares ? CLEANUP_RELEASE_SENT : CLEANUP_TOKEN;
}

static enum cleanup_cause cause_of(const struct cancelled *r)
{
    switch (verb_traits[r->verb].residue) {
    case RESIDUE_NONE: /* but the line may have granted the lock before */
        return r->undo && r->may_hold && guarded(GUARD_HELD) ? CLEANUP_TOKEN
                                                             : CLEANUP_NONE;
    case RESIDUE_LATE_KEY:
        return cause_of_acquire(r);
    case RESIDUE_TOKEN:
        return cause_of_stay(r);
    case RESIDUE_OWN_KEY:
        return cause_of_release(r);
    }
    return CLEANUP_NONE;
}

struct cancellation cancel_request(const struct cancelled *r)
{
    bool ended = r->stage == CANCEL_ENDED;
    struct cancellation c = {
        .ends_use = r->undo,
        .changed_nothing =
            !r->may_hold &&
            (r->stage == CANCEL_UNSENT ||
                (ended && (r->never_sent || (r->undo && !r->unsure)))),
    };
    if (!r->never_undo)
        c.cause = cause_of(r);
    return c;
}

/* ------------------------------------------------------------ the machine */

bool cleanup_too_late(const struct cleanup *c, uint64_t now)
{
    return limit_passed(c->not_after, now);
}

/* Something may still use the token, so nothing is deleted. */
static bool must_stay(const struct cleanup *c, uint64_t now)
{
    return c->in_use || cleanup_too_late(c, now);
}

/* The key was set by now, if at all, so after its TTL it has expired. */
static void limit_lifetime(struct cleanup *c, uint64_t now)
{
    if (c->until == NEVER)
        c->until = deadline_after(now, c->ttl_ns);
}

static void try_later(struct cleanup *c, uint64_t now)
{
    c->state = CLEANUP_IDLE;
    c->next_try = deadline_after(now, c->interval);
    c->interval = earlier(2 * c->interval, LAST_INTERVAL);
}

void cleanup_start(struct cleanup *c, enum cleanup_cause cause, uint64_t ttl_ns,
    uint64_t not_after, uint64_t now)
{
    bool settled = cause == CLEANUP_TOKEN || cause == CLEANUP_RELEASE_SENT;
    *c = (struct cleanup){
        .state = cause == CLEANUP_RELEASE_SENT     ? CLEANUP_DELETING
                 : cause == CLEANUP_ACQUIRE_IN_USE ? CLEANUP_WATCHING
                                                   : CLEANUP_IDLE,
        /* ACQUIRE_LOST: cleanup_connection_lost() follows, and makes it stray.
         */
        .acquire = settled ? ACQUIRE_OVER : ACQUIRE_AHEAD,
        .in_use =
            cause == CLEANUP_ACQUIRE_IN_USE || cause == CLEANUP_ACQUIRE_LOST,
        .ttl_ns = ttl_ns,
        .not_after = not_after,
        .next_try = now,
        .interval = FIRST_INTERVAL,
        .until = settled ? deadline_after(now, ttl_ns) : NEVER,
    };
    if (settled && not_after)
        c->until = earlier(c->until, not_after);
}

static bool can_kill(const struct cleanup *c, const char *run_id)
{
    return c->acquire == ACQUIRE_STRAY && c->client_id && run_id[0] &&
           strcmp(run_id, c->run_id) == 0 && guarded(GUARD_KILL);
}

unsigned cleanup_next(struct cleanup *c, const char *run_id, uint64_t now)
{
    bool kill = can_kill(c, run_id);
    if (!must_stay(c, now)) {
        c->state = kill ? CLEANUP_KILL_DELETING : CLEANUP_DELETING;
        return kill ? CLEANUP_SEND_KILL | CLEANUP_SEND_DELETE
                    : CLEANUP_SEND_DELETE;
    }
    c->state = kill ? CLEANUP_KILLING : CLEANUP_IDLE;
    /* Idle: there is nothing to do until the token is no longer in use. */
    c->next_try = NEVER;
    return kill ? CLEANUP_SEND_KILL : 0;
}

void cleanup_put_off(struct cleanup *c, uint64_t now)
{
    try_later(c, now);
}

void cleanup_withdrawn(struct cleanup *c, uint64_t now)
{
    c->state =
        c->state == CLEANUP_KILL_DELETING ? CLEANUP_KILLING : CLEANUP_IDLE;
    c->next_try = now;
}

void cleanup_kill_answered(struct cleanup *c, bool acknowledged, uint64_t now)
{
    if (acknowledged)
        c->acquire = ACQUIRE_OVER;
    if (c->state == CLEANUP_KILL_DELETING)
        c->state = CLEANUP_DELETING;
    if (c->state != CLEANUP_KILLING)
        return;
    bool stays = must_stay(c, now);
    c->state = stays && acknowledged ? CLEANUP_DONE : CLEANUP_IDLE;
    c->next_try = stays ? NEVER : now;
}

void cleanup_delete_answered(
    struct cleanup *c, const struct outcome *outcome, uint64_t now)
{
    bool fault = outcome->kind == OUTCOME_FAULT;
    bool in_line = outcome->kind == OUTCOME_NOT_MINE && outcome->unsure;
    if (!fault && !in_line &&
        (outcome->kind == OUTCOME_MINE || c->acquire != ACQUIRE_STRAY)) {
        c->state = CLEANUP_DONE;
        return;
    }
    /* It came behind the acquire, which has run by now. */
    if (fault || (in_line && c->acquire != ACQUIRE_STRAY))
        limit_lifetime(c, now);
    try_later(c, now);
    cleanup_tick(c, now);
}

void cleanup_acquire_answered(struct cleanup *c, bool not_applied, uint64_t now)
{
    c->acquire = ACQUIRE_OVER;
    if (c->state == CLEANUP_WATCHING ||
        (not_applied && c->state == CLEANUP_IDLE))
        c->state = CLEANUP_DONE;
    else if (not_applied)
        c->until = now; /* whether or not the deletion succeeds */
    else
        limit_lifetime(c, now);
}

void cleanup_connection_lost(
    struct cleanup *c, int64_t client_id, const char *run_id, uint64_t now)
{
    /* Only after the first loss is it tried again at once: it may be the
     * compare-and-delete that makes the server close its connections. */
    if (!c->lost)
        c->next_try = now;
    else if (c->state != CLEANUP_IDLE)
        try_later(c, now);
    c->lost = true;
    c->state = CLEANUP_IDLE;
    limit_lifetime(c, now);
    /* Else it is on an earlier connection. */
    if (c->acquire == ACQUIRE_AHEAD ||
        (c->acquire == ACQUIRE_STRAY && !guarded(GUARD_FIRST_CONNECTION))) {
        c->acquire = ACQUIRE_STRAY;
        c->client_id = client_id;
        memcpy(c->run_id, run_id, strnlen(run_id, sizeof(c->run_id) - 1));
    }
    if (!guarded(GUARD_LOST_ACQUIRE))
        c->until = now;
}

void cleanup_not_in_use(struct cleanup *c, uint64_t not_after, uint64_t now)
{
    if (!c->in_use)
        return;
    c->in_use = false;
    c->not_after = not_after;
    if (c->state == CLEANUP_IDLE)
        c->next_try = now;
}

void cleanup_release_answered(struct cleanup *c, const struct outcome *outcome,
    uint64_t not_after, uint64_t now)
{
    if (outcome->kind != OUTCOME_FAULT)
        cleanup_not_in_use(c, not_after, now);
}

bool cleanup_can_cancel(const struct cleanup *c)
{
    switch (c->state) {
    case CLEANUP_DELETING:
    case CLEANUP_KILL_DELETING:
        return false;
    case CLEANUP_IDLE:
        /* False while its acquire is unanswered: nobody can hold that token. */
        return c->until != NEVER;
    default:
        return true;
    }
}

void cleanup_cancel(struct cleanup *c, bool applied)
{
    bool may_come = c->acquire != ACQUIRE_OVER && !applied;
    if (c->state == CLEANUP_IDLE && !may_come)
        c->state = CLEANUP_DONE;
    else
        c->in_use = true;
}

void cleanup_tick(struct cleanup *c, uint64_t now)
{
    if (c->state == CLEANUP_IDLE && now >= c->until)
        c->state = CLEANUP_GIVEN_UP;
}
