/* SPDX-License-Identifier: MIT */
/*
 * Several names by one handle: in which order they are taken, when all are
 * given back and asked for again, and the result of the whole.
 *
 * Invariant: while an acquire is running, at most one attempt is under way, and
 * the next one begins only when no member makes a call and all that was granted
 * has been given back.
 */
#include "core/several.h"

#include <string.h>

#include "base/deadline.h"
#include "model/guard.h"

static bool begins_leases(enum life_call call)
{
    return call_traits[call].acquires || call_traits[call].adopts;
}

static uint64_t bit(unsigned member)
{
    return UINT64_C(1) << member;
}

static uint64_t all_of(const struct several *s)
{
    return ~UINT64_C(0) >> (SEVERAL_MAX - s->count);
}

/* Takes the lowest member out of *set. */
static bool take(uint64_t *set, unsigned *member)
{
    if (!*set)
        return false;
    *member = (unsigned)__builtin_ctzll(*set);
    *set &= *set - 1;
    return true;
}

/* ------------------------------------------------------------------- order */

static int compare(struct slice a, struct slice b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

unsigned several_order(
    const struct slice *keys, unsigned count, unsigned char *order)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        while (at > 0 && guarded(GUARD_NAME_ORDER) &&
               compare(keys[order[at - 1]], keys[i]) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (unsigned char)i;
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (compare(keys[order[i]], keys[order[i + 1]]) == 0)
            return i;
    return count;
}

void several_init(struct several *s, unsigned count)
{
    *s = (struct several){.count = count, .member = count};
}

/* ------------------------------------------------------------------- begin */

static void begin(struct several *s, enum life_call call)
{
    s->call = call;
    s->running = true;
    s->result = LIFE_OK;
    s->fault = FAULT_NONE;
    s->member = s->count;
    s->cancelled = s->again = s->settle_due = false;
    s->attempts = 0;
    s->retry_at = 0;
    s->granted = s->to_cancel = s->early = 0;
    s->asks_early = false;
}

/* The members behind this one that have neither been granted their names nor
 * make a call. */
static uint64_t idle_behind(const struct several *s, unsigned member)
{
    uint64_t behind = all_of(s) & ~(bit(member) | (bit(member) - 1));
    return behind & ~(s->granted | s->calls | s->to_begin);
}

/* It is the turn of this member; and perhaps those behind ask, too. */
static void begin_from(struct several *s, unsigned member, bool and_behind)
{
    if (and_behind && s->asks_early) {
        s->early |= idle_behind(s, member);
        s->to_begin |= idle_behind(s, member);
    }
    s->early &= ~bit(member);
    s->to_begin |= bit(member);
}

static void begin_attempt(struct several *s)
{
    s->attempts++;
    s->retry_at = 0;
    s->granted = 0;
    s->token_due = true;
    begin_from(s, 0, true);
}

void several_acquire(struct several *s, uint64_t wait_ns, uint64_t timeout_ns,
    bool asks_early, const struct backoff *backoff, uint64_t now)
{
    begin(s, CALL_ACQUIRE);
    s->asks_early = asks_early;
    s->wait_until = deadline_after(now, wait_ns);
    s->end = deadline_after(now, later(wait_ns, timeout_ns));
    s->backoff = *backoff;
    begin_attempt(s);
}

void several_call(struct several *s, enum life_call call)
{
    begin(s, call);
    s->to_begin = all_of(s);
}

/* --------------------------------------------------------------------- end */

/* Whatever this call has granted is given back. */
static void give_back(struct several *s)
{
    s->to_end |= s->granted;
    s->granted = 0;
    s->to_begin = s->early = 0;
    s->to_cancel |= s->calls;
    s->token_due = s->settle_due = false;
}

/* The acquire, or the adoption, ends without a grant. */
static void fail(struct several *s, enum life_result result, enum fault fault,
    unsigned member)
{
    give_back(s);
    s->again = false;
    s->retry_at = 0;
    s->result = result;
    s->fault = fault;
    s->member = member;
}

/* The attempt is over. Another one follows, unless the wait is over too. */
static void try_again(struct several *s)
{
    if (s->cancelled) {
        fail(s, LIFE_CANCELLED, FAULT_NONE, s->count);
        return;
    }
    give_back(s);
    s->again = true;
}

/* No member makes a call any longer. */
static void plan_again(struct several *s, uint64_t now)
{
    s->again = false;
    if (now >= s->wait_until) {
        fail(s, LIFE_BUSY, FAULT_NONE, s->count);
        return;
    }
    uint64_t delay = s->attempts > 1 ? backoff_next(&s->backoff) : 0;
    s->retry_at = earlier(deadline_after(now, delay), s->wait_until);
}

void several_cancel(struct several *s)
{
    if (!s->running)
        return;
    s->cancelled = true;
    s->to_cancel |= s->calls;
    if (s->again || s->retry_at)
        fail(s, LIFE_CANCELLED, FAULT_NONE, s->count);
}

/* ---------------------------------------------------------- what comes back */

/* The first member that has not been granted its name is next. It may have
 * asked already. and_behind: one was granted its name just now. */
static void go_on(struct several *s, bool and_behind)
{
    uint64_t missing = all_of(s) & ~s->granted;
    if (!missing) {
        s->settle_due = true;
        return;
    }
    unsigned next = (unsigned)__builtin_ctzll(missing);
    if ((s->calls | s->to_begin) & bit(next))
        return;
    if (s->cancelled)
        fail(s, LIFE_CANCELLED, FAULT_NONE, s->count);
    else
        begin_from(s, next, and_behind);
}

/* One that was asked for early was not granted. */
static void early_over(struct several *s, unsigned member,
    const struct several_end *end, uint64_t now)
{
    if (end->result == LIFE_BUSY || end->result == LIFE_FAULT)
        go_on(s, false); /* it asks again when it is its turn */
    else if (end->result != LIFE_CANCELLED && now < s->wait_until)
        try_again(s); /* the key may have the token */
    else
        fail(s, end->result, end->fault, member);
}

static void acquire_over(struct several *s, unsigned member,
    const struct several_end *end, uint64_t now)
{
    bool was_early = s->early & bit(member);
    bool over = s->again || s->result != LIFE_OK; /* this attempt is */
    s->early &= ~bit(member);
    if (end->result == LIFE_OK && !end->token_is_used) {
        s->granted |= bit(member);
        if (over)
            give_back(s);
        else
            go_on(s, true);
    } else if (over) {
        return;
    } else if (end->token_is_used) {
        try_again(s);
    } else if (was_early) {
        early_over(s, member, end, now);
    } else {
        fail(s, end->result, end->fault, member);
    }
}

/* What the whole reports if the members have different results: that a name is
 * lost matters more than that another one may be, and so on. */
static unsigned weight_of(enum life_result result)
{
    switch (result) {
    case LIFE_OK:
        return 0;
    case LIFE_CANCELLED:
        return 1;
    case LIFE_FAULT:
        return 2;
    case LIFE_UNKNOWN:
        return 3;
    default:
        return 4;
    }
}

void several_over(struct several *s, unsigned member,
    const struct several_end *end, uint64_t now)
{
    s->calls &= ~bit(member);
    if (!s->running)
        return;
    if (call_traits[s->call].acquires) {
        acquire_over(s, member, end, now);
        return;
    }
    if (end->result == LIFE_OK && begins_leases(s->call))
        s->granted |= bit(member);
    if (weight_of(end->result) > weight_of(s->result)) {
        s->result = end->result;
        s->fault = end->fault;
        s->member = member;
    }
    if (s->calls || s->to_begin)
        return;
    if (s->result != LIFE_OK)
        give_back(s);
    else if (begins_leases(s->call))
        s->settle_due = true;
}

void several_lost(struct several *s, unsigned member, uint64_t now)
{
    (void)now;
    if (!s->running || !call_traits[s->call].acquires ||
        !(s->granted & bit(member)))
        return;
    s->granted &= ~bit(member);
    s->to_end |= bit(member);
    try_again(s);
}

void several_no_token(struct several *s)
{
    fail(s, LIFE_FAULT, FAULT_SYSTEM, s->count);
}

void several_settled(struct several *s, bool held, uint64_t now)
{
    if (held)
        return;
    if (call_traits[s->call].acquires && now < s->wait_until)
        try_again(s);
    else
        fail(s, LIFE_LOST, FAULT_NONE, s->count);
}

uint64_t several_wake(const struct several *s)
{
    return s->retry_at ? s->retry_at : NEVER;
}

/* ------------------------------------------------------------------ actions */

static bool due_action(struct several *s, struct several_action *action)
{
    action->member = 0;
    if (take(&s->to_cancel, &action->member)) {
        action->kind = SEVERAL_CANCEL;
    } else if (take(&s->to_end, &action->member)) {
        action->kind =
            call_traits[s->call].adopts ? SEVERAL_LEAVE : SEVERAL_REMOVE;
    } else if (s->token_due) {
        s->token_due = false;
        action->kind = SEVERAL_TOKEN;
    } else if (take(&s->to_begin, &action->member)) {
        s->calls |= bit(action->member);
        action->kind = SEVERAL_BEGIN;
        action->early = s->early & bit(action->member);
    } else if (s->settle_due) {
        s->settle_due = false;
        action->kind = SEVERAL_SETTLE;
    } else {
        return false;
    }
    return true;
}

bool several_next(
    struct several *s, struct several_action *action, uint64_t now)
{
    while (!due_action(s, action)) {
        if (s->calls || !s->running)
            return false;
        if (s->again) {
            plan_again(s, now);
        } else if (s->retry_at) {
            if (now < s->retry_at)
                return false;
            begin_attempt(s);
        } else {
            s->running = false;
            return false;
        }
    }
    return true;
}
