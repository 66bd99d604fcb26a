/* SPDX-License-Identifier: MIT */
/* Drives the members of a handle of several names, and reports what becomes of
 * the whole. */
#include "lock/members.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "lock/actions.h"
#include "lock/drive.h"
#include "lock/loss.h"
#include "lock/errmsg.h"
#include "lock/waiting.h"
#include "wire/strategies.h"

struct slice members_name(const struct nxl_lock *lock)
{
    struct slice key = lock->name.key;
    size_t prefix = lock->client->prefix.len;
    return (struct slice){key.data + prefix, key.len - prefix};
}

/* ------------------------------------------------------------------ messages
 */

/* What a result means that no member has decided. */
static const char *own_words(enum life_result result)
{
    switch (result) {
    case LIFE_BUSY:
        return "the names were not free together before the wait was over";
    case LIFE_LOST:
        return "all names were granted, but a lease expired before the call "
               "returned; nothing is held";
    case LIFE_CANCELLED:
        return "cancelled by nxl_lock_cancel(), nxl_lock_interrupt() or "
               "nxl_client_interrupt(); nothing is held";
    default:
        return "cannot draw a token: the system has no random bytes";
    }
}

/* The member whose message is that of the call; NULL: there is none. */
static const struct nxl_lock *member_that_decided(const struct members *m)
{
    const struct several *s = &m->several;
    if (s->member < m->count)
        return m->locks[s->member];
    if (s->result != LIFE_OK || m->group.front->client->server_count == 1)
        return NULL;
    for (unsigned i = 0; i < m->count; i++) /* a minority of servers failed */
        if (*operation_words(&m->locks[i]->operation))
            return m->locks[i];
    return NULL;
}

static void tell(struct members *m)
{
    struct nxl_lock *front = m->group.front;
    const struct nxl_lock *member = member_that_decided(m);
    enum life_result result = m->several.result;
    struct text text;
    if (member && result != LIFE_CANCELLED) {
        name_begin_text(&member->name, front->client->prefix, &text);
        text_add(&text, operation_words(&member->operation));
    } else if (result != LIFE_OK) {
        text_set(&text, own_words(result));
    } else {
        return;
    }
    operation_set_errmsg(&front->operation, &text);
    if (result == LIFE_FAULT || result == LIFE_UNKNOWN)
        front->client->errmsg = text;
}

const struct operation *members_operation(const struct nxl_lock *lock)
{
    const struct nxl_lock *member =
        lock_is_front(lock) ? member_that_decided(members_of(lock)) : NULL;
    return member ? &member->operation : &lock->operation;
}

/* -------------------------------------------------------------------- lease */

/* The earliest deadline of the members; 0: one of them is not held. */
static uint64_t earliest_deadline(const struct members *m)
{
    uint64_t deadline = NEVER;
    for (unsigned i = 0; i < m->count; i++)
        deadline =
            earlier(deadline, atomic_load(&m->locks[i]->life.lease.deadline));
    return deadline;
}

/* The front's lease follows those of the members. */
static void follow_leases(struct members *m, uint64_t now)
{
    struct lease *lease = &m->group.front->life.lease;
    if (lease->stored != LEASE_HELD)
        return;
    uint64_t deadline = earliest_deadline(m);
    if (deadline)
        lease_extend(lease, deadline);
    else
        lease_lose(lease, now);
}

/* All members were granted their names: the whole is held, if it still is. */
static void settle(struct members *m, uint64_t now)
{
    struct nxl_lock *front = m->group.front;
    bool held = earliest_deadline(m) > now;
    for (unsigned i = 0; held && i < m->count; i++) {
        life_all_granted(&m->locks[i]->life, m->renewed, m->max_hold_ns, now);
        lock_run(m->locks[i], now);
    }
    held = held && earliest_deadline(m) > now;
    several_settled(&m->several, held, now);
    if (held)
        lease_grant(&front->life.lease, earliest_deadline(m), 0, NEVER, now);
}

static void end_lease(struct nxl_lock *member, bool keep, uint64_t now)
{
    if (keep)
        life_end_keeping_key(&member->life, now);
    else
        life_end_removing_key(&member->life, now);
    lock_run(member, now);
}

void members_end_leases(struct nxl_lock *front, uint64_t now)
{
    struct members *m = members_of(front);
    for (unsigned i = 0; i < m->count; i++) {
        life_end_lease(&m->locks[i]->life, now);
        renewal_stop(m->locks[i]->life.renewal);
        lock_run(m->locks[i], now);
    }
    lease_end(&front->life.lease, now);
}

/* ------------------------------------------------------------------ actions */

/* Are those that have to ask before it is their turn sure not to be granted
 * before that? By a script (acquire_after.lua), for an exclusive lock. */
static bool may_ask_early(const struct nxl_lock *front)
{
    const struct dialect *dialect =
        &front->operation.requests[0].server->dialect;
    return front->client->server_count == 1 && front->name.counter.len == 0 &&
           !token_has_share((struct slice){front->own_token, front->own_len}) &&
           strategies_are_known(dialect) && strategies_are_scripts(dialect);
}

static void begin_acquire(
    struct members *m, struct nxl_lock *member, bool early, uint64_t now)
{
    uint64_t wait_ns = early ? 0 : deadline_left(m->several.wait_until, now);
    member->asks_early = early;
    member->token_is_used = member->token_wanted = false;
    life_acquire_by(
        &member->life, wait_ns, m->several.end, lock_seed(member, now), now);
    if (wait_ns > 0)
        waiting_begin(member, now);
}

static void begin_member(
    struct members *m, struct nxl_lock *member, bool early, uint64_t now)
{
    int rc = NXL_PENDING;
    if (call_traits[m->several.call].acquires)
        begin_acquire(m, member, early, now);
    else
        rc = m->type->start(member, &m->args, now);
    if (rc == NXL_PENDING) {
        lock_begin(member, m->type->kind, m->type->request, now);
        return;
    }
    struct several_end lost = {.result = LIFE_LOST};
    lock_run(member, now);
    several_over(&m->several, member->member, &lost, now);
}

static void carry_out(
    struct members *m, const struct several_action *action, uint64_t now)
{
    struct nxl_lock *member = m->locks[action->member];
    switch (action->kind) {
    case SEVERAL_TOKEN:
        if (!action_draw_token(m->group.front))
            several_no_token(&m->several);
        break;
    case SEVERAL_BEGIN:
        begin_member(m, member, action->early, now);
        break;
    case SEVERAL_CANCEL:
        life_cancel(&member->life);
        lock_run(member, now);
        break;
    case SEVERAL_REMOVE:
    case SEVERAL_LEAVE:
        end_lease(member, action->kind == SEVERAL_LEAVE, now);
        break;
    case SEVERAL_SETTLE:
        settle(m, now);
        break;
    }
}

/* The call of the whole is over. */
static void finish(struct members *m, uint64_t now)
{
    struct nxl_lock *front = m->group.front;
    const struct several *s = &m->several;
    front->attempts = m->has_waited ? 2 : 1;
    follow_leases(m, now);
    tell(m);
    life_end_call(&front->life, s->result, s->fault);
}

/* What runs meanwhile, of the members and the front, comes back here at once:
 * the loop goes on. */
static void ran(struct nxl_lock *lock, uint64_t now)
{
    struct members *m = members_of(lock);
    struct nxl_lock *front = m->group.front;
    struct several_action action;
    if (m->is_running)
        return;
    m->is_running = true;
    follow_leases(m, now);
    while (several_next(&m->several, &action, now))
        carry_out(m, &action, now);
    follow_leases(m, now);
    if (front->call.running && !m->several.running)
        finish(m, now);
    lock_run(front, now);
    m->is_running = false;
    if (front->call.running)
        timer_set(&front->client->timers, &front->operation.timer,
            several_wake(&m->several));
}

/* ------------------------------------------------------ what the members say
 */

static void member_over(struct nxl_lock *member, uint64_t now)
{
    struct members *m = members_of(member);
    struct several_end end = {
        .result = member->life.result,
        .fault = member->life.fault,
        .token_is_used = member->token_wanted,
    };
    m->has_waited |= member->attempts > 1 || member->life.vote.lined_up;
    several_over(&m->several, member->member, &end, now);
}

/* While others are waited for, the acquire begins again. Later the whole is
 * lost, which is reported once. */
static void member_lost(struct nxl_lock *member, uint64_t now)
{
    struct members *m = members_of(member);
    struct nxl_lock *front = m->group.front;
    struct renewing *renewing = front->renewing;
    struct text text;
    several_lost(&m->several, member->member, now);
    follow_leases(m, now);
    if (front->life.lease.stored == LEASE_NONE || !renewing ||
        renewing->loss != NXL_LOSS_NONE)
        return;
    name_begin_text(&member->name, front->client->prefix, &text);
    text_add(&text, operation_words(&member->renewing->operation));
    renewing->loss = member->renewing->loss;
    operation_set_errmsg(&renewing->operation, &text);
    loss_announce(front, now);
}

/* If one is renewed, all are, in the same write. */
static void member_renewal_due(struct nxl_lock *member, uint64_t now)
{
    struct members *m = members_of(member);
    if (!renewal_due(member->life.renewal, now))
        return;
    for (unsigned i = 0; i < m->count; i++) {
        struct nxl_lock *other = m->locks[i];
        if (other == member || other->life.renewal->state != RENEWAL_WAITING)
            continue;
        renewal_hurry(other->life.renewal, now);
        life_tick(&other->life, now);
        lock_run(other, now);
    }
}

/* --------------------------------------------------------------------- ends */

static void cancel(struct nxl_lock *front, uint64_t now)
{
    (void)now;
    several_cancel(&members_of(front)->several);
}

/* A release goes on in the background, as that of one name does. */
static void end(struct nxl_lock *front, uint64_t now)
{
    struct members *m = members_of(front);
    if (m->several.running && call_traits[m->several.call].acquires)
        lock_cancel(front, now);
    for (unsigned i = 0; i < m->count; i++)
        life_discard(&m->locks[i]->life);
    for (unsigned i = 0; i < m->count; i++)
        lock_run(m->locks[i], now);
    members_end_leases(front, now);
}

static void give_up(struct nxl_lock *front, uint64_t now)
{
    struct members *m = members_of(front);
    bool adopted = front->kind == NXL_OP_ADOPT;
    if (!adopted && !lock_acquires(front))
        return;
    for (unsigned i = 0; i < m->count; i++)
        end_lease(m->locks[i], adopted, now);
}

static const struct group_type members_type = {.ran = ran,
    .member_over = member_over,
    .member_lost = member_lost,
    .renewal_due = member_renewal_due,
    .cancel = cancel,
    .end = end,
    .give_up = give_up};

/* ----------------------------------------------------------------- the calls
 */

static int begin_call(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args)
{
    struct members *m = members_of(front);
    m->type = type;
    m->args = args ? *args : (struct call_args){0};
    m->has_waited = false;
    front->life.call = m->several.call;
    return NXL_PENDING;
}

int members_acquire(struct nxl_lock *front, const struct call_type *type,
    uint64_t wait_ns, uint64_t now)
{
    const struct life_terms *terms = &front->life.terms;
    struct several *s = &members_of(front)->several;
    struct backoff backoff;
    members_end_leases(front, now);
    backoff_init(&backoff, terms->retry_first_ns, terms->retry_max_ns,
        lock_seed(front, now));
    several_acquire(
        s, wait_ns, terms->timeout_ns, may_ask_early(front), &backoff, now);
    return begin_call(front, type, NULL);
}

int members_call(struct nxl_lock *front, const struct call_type *type,
    enum life_call call, const struct call_args *args, uint64_t now)
{
    (void)now;
    several_call(&members_of(front)->several, call);
    return begin_call(front, type, args);
}

bool members_join(
    struct nxl_lock *front, struct nxl_lock *const *locks, unsigned count)
{
    struct members *m = calloc(1, sizeof(*m) + count * sizeof(*m->locks));
    if (!m)
        return false;
    m->group = (struct group){
        .type = &members_type, .front = front, .members = m->locks};
    m->count = count;
    several_init(&m->several, count);
    front->group = &m->group;
    for (unsigned i = 0; i < count; i++) {
        m->locks[i] = locks[i];
        m->locks[i]->group = &m->group;
        m->locks[i]->member = (uint8_t)i;
    }
    return true;
}
