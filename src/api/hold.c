/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a renewal can only move the deadline of a lock that is held, and of
 * which no loss was told; a loss makes nxl_lock_held() false before it is told,
 * and is told once; with the end of the hold nothing more is sent for it.
 */
#include "api/hold.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/engine.h"
#include "api/keeper.h"
#include "api/lease.h"
#include "api/machine.h"
#include "api/message.h"
#include "api/operation.h"
#include "api/trace.h"
#include "base/deadline.h"
#include "base/guard.h"

/* How long a loss may wait for the answer to who has it now. */
#define LOOK_LONGEST (250 * NS_PER_MS)

bool hold_make(struct nxl_lock *lock, struct nxl_lock *agent)
{
    struct hold *hold = calloc(1, sizeof *hold);
    if (!hold || !timers_reserve(&lock->client->holds)) {
        free(hold);
        return false;
    }
    hold->owner = lock;
    hold->agent = agent;
    agent->serves = hold;
    list_init(&hold->lost);
    lock->hold = hold;
    return true;
}

/* The descriptor tells of what waits, and of nothing else. */
static void settle_descriptor(struct nxl_client *client)
{
    uint64_t times;
    if (client->loss_fd >= 0 && list_empty(&client->losses))
        (void)!read(client->loss_fd, &times, sizeof times);
}

/* Nobody needs to be told any more. */
static void untell(struct hold *hold)
{
    if (list_empty(&hold->lost))
        return;
    list_remove(&hold->lost);
    settle_descriptor(hold->owner->client);
}

static void forget_loss(struct hold *hold)
{
    untell(hold);
    hold->loss = NXL_LOSS_NONE;
    text_clear(&hold->why);
}

static void switch_off(struct hold *hold, uint64_t now)
{
    struct nxl_client *client = hold->owner->client;
    timer_stop(&client->holds, &hold->timer);
    if (hold->state == HOLD_OFF)
        return;
    hold->state = HOLD_OFF;
    operation_discard(&hold->agent->operation, now);
    lease_end(hold->agent, now);
    client->kept--;
    if (!client->kept)
        keeper_unneeded(client, now);
}

struct nxl_lock *hold_free(struct nxl_lock *lock)
{
    struct hold *hold = lock->hold;
    if (!hold)
        return NULL;
    struct nxl_lock *agent = hold->agent;
    untell(hold);
    timers_unreserve(&lock->client->holds);
    lock->hold = NULL;
    free(hold);
    return agent;
}

/* ------------------------------------------------------------------ holding */

static void sleep_on(struct hold *hold, uint64_t at)
{
    struct nxl_client *client = hold->owner->client;
    timer_set(&client->holds, &hold->timer, at);
    keeper_expect(client, at);
}

static uint64_t deadline_of(const struct hold *hold)
{
    return atomic_load(&hold->owner->deadline);
}

void hold_begin(struct nxl_lock *lock, uint64_t now)
{
    struct hold *hold = lock->hold;
    if (!hold)
        return;
    struct holding_terms terms = {
        .ttl_ms = lock->ttl_ms,
        .deadline = deadline_of(hold),
        .ends = lock->ends,
        .seed = now ^ (uint64_t)(uintptr_t)lock ^ lock->client->salt,
    };
    forget_loss(hold);
    if (hold->state == HOLD_OFF)
        lock->client->kept++;
    hold->state = HOLD_ON;
    holding_begin(&hold->machine, &terms, now);
    sleep_on(hold, holding_wake(&hold->machine));
}

void hold_prolonged(struct nxl_lock *lock, uint64_t now)
{
    struct hold *hold = lock->hold;
    if (!hold || hold->state != HOLD_ON)
        return;
    holding_moved(&hold->machine, deadline_of(hold), now);
    sleep_on(hold, holding_wake(&hold->machine));
}

void hold_end(struct nxl_lock *lock, uint64_t now)
{
    if (!lock->hold)
        return;
    switch_off(lock->hold, now);
    untell(lock->hold); /* who ends it knows */
}

/* The agent speaks for the token that its owner has now. */
static void brief(struct hold *hold)
{
    struct nxl_lock *lock = hold->owner, *agent = hold->agent;
    memcpy(agent->token, lock->token, lock->token_len + 1);
    agent->token_len = lock->token_len;
    agent->token_foreign = true;
    agent->reached = lock->reached;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        exchange_inherit(
            &agent->requests[i].exchange, &lock->requests[i].exchange);
    lease_set(agent, deadline_of(hold));
}

/* --------------------------------------------------------------------- loss */

static void tell(struct hold *hold, uint64_t now)
{
    struct nxl_lock *lock = hold->owner;
    struct nxl_client *client = lock->client;
    switch_off(hold, now);
    list_append(&client->losses, &hold->lost);
    client->stats.losses++;
    trace_loss(lock, hold->loss, now);
    if (client->loss_fd >= 0) {
        uint64_t one = 1;
        (void)!write(client->loss_fd, &one, sizeof one);
    }
}

static void lose(struct hold *hold, uint64_t now)
{
    struct holding *h = &hold->machine;
    bool asleep = now >= deadline_of(hold);
    bool unheard = h->failing_since || (h->asked_at && !asleep);
    uint64_t since = h->failing_since ? h->failing_since : h->asked_at;
    lease_forget(hold->owner, now);
    hold->loss = unheard ? NXL_LOSS_UNREACHABLE : NXL_LOSS_EXPIRED;
    text_clear(&hold->why);
    if (unheard) {
        const char *words = hold->agent->message.data;
        text_addf(&hold->why, "it could not be prolonged for %llu ms: ",
            (unsigned long long)((now - since) / NS_PER_MS));
        text_add(&hold->why, *words ? words : "no answer");
    } else if (h->terms.ends != NEVER && h->renew_at == NEVER) {
        text_add(&hold->why, "max_hold_ms is over");
    } else {
        text_add(&hold->why, "its time was over before it was prolonged: this "
                             "program was stopped, or its loop did not come");
    }
    tell(hold, now);
}

/* The server says that another value, or none, stands there: which? */
static void look(struct hold *hold, uint64_t now)
{
    lease_forget(hold->owner, now);
    hold->state = HOLD_LOOKING;
    operation_discard(&hold->agent->operation, now); /* a renewal */
    sleep_on(hold, now); /* not out of the middle of an operation's end */
}

void hold_refuted(struct nxl_lock *lock, uint64_t now)
{
    if (lock->hold && lock->hold->state == HOLD_ON)
        look(lock->hold, now);
}

static void seen(struct hold *hold, int result, uint64_t now)
{
    nxl_holder holder;
    text_clear(&hold->why);
    hold->loss = NXL_LOSS_REMOVED;
    bool stands = result == NXL_OK &&
                  nxl_lock_holder(hold->agent, &holder) == NXL_OK;
    /* Our own may stand at a minority still. */
    if (stands && !nxl_holder_is(&holder, hold->owner->token)) {
        hold->loss = NXL_LOSS_TAKEN;
        text_add(&hold->why, "another value stands at the server, of ");
        text_add(&hold->why, holder.label ? holder.label : "somebody else");
    } else if (result == NXL_FREE) {
        text_add(&hold->why, "the key was removed at the server: by force, by "
                             "a flush or an eviction, or with its data");
    } else {
        text_add(&hold->why, "the server does not have the token any more");
    }
    tell(hold, now);
}

/* ----------------------------------------------------------------- renewing */

static void ask(struct hold *hold, uint64_t now)
{
    struct nxl_client *client = hold->owner->client;
    struct holding *h = &hold->machine;
    uint32_t ttl_ms = holding_ttl_ms(h, now);
    uint64_t patience = holding_patience(h, client->timeout_ns, now);
    brief(hold);
    holding_asked(h, now);
    client->renewing++;
    operation_extend(hold->agent, ttl_ms, patience, now);
}

void hold_tick(struct hold *hold, uint64_t now)
{
    struct operation *op = &hold->agent->operation;
    if (hold->state == HOLD_LOOKING && !op->running) {
        hold->owner->client->renewing++;
        sleep_on(hold, earlier(deadline_after(now, LOOK_LONGEST),
                           holding_lost_at(&hold->machine)));
        operation_round(hold->agent, NXL_OP_INSPECT, now);
        return;
    }
    if (hold->state == HOLD_LOOKING) {
        operation_discard(op, now); /* then seen() */
        return;
    }
    switch (holding_due(&hold->machine, now)) {
    case HOLDING_LOST:
        lose(hold, now);
        return;
    case HOLDING_RENEW:
        ask(hold, now);
        break;
    case HOLDING_WAIT:
        break;
    }
    if (hold->state == HOLD_ON)
        sleep_on(hold, holding_wake(&hold->machine));
}

static void renewed(struct hold *hold, uint64_t now)
{
    struct nxl_lock *lock = hold->owner;
    struct nxl_stats *stats = &lock->client->stats;
    uint64_t before = deadline_of(hold);
    uint64_t left_ms = deadline_left(before, now) / NS_PER_MS;
    lease_set(lock, later(before, atomic_load(&hold->agent->deadline)));
    holding_prolonged(&hold->machine, deadline_of(hold), now);
    if (!stats->renewals || left_ms < stats->least_slack_ms)
        stats->least_slack_ms = left_ms;
    stats->renewals++;
    trace_renewal(lock, NXL_OK, "", now);
}

void hold_answered(struct hold *hold, uint64_t now)
{
    struct nxl_lock *lock = hold->owner;
    const struct operation *op = &hold->agent->operation;
    lock->client->renewing--;
    if (hold->state == HOLD_LOOKING && op->kind == NXL_OP_INSPECT) {
        seen(hold, op->result, now);
        return;
    }
    if (hold->state != HOLD_ON)
        return;
    /* (The lease that it was to prolong may be over, and its owner may have
     * prolonged it meanwhile: that is no word of the server's.) */
    bool refuted =
        op->result == NXL_LOST && machine_verdict(op) == VERDICT_NO;
    if (refuted && now < deadline_of(hold)) {
        look(hold, now);
        return;
    }
    if (now >= deadline_of(hold) && guarded(GUARD_LAPSED)) {
        hold->machine.asked_at = 0; /* it was not the answer that was late */
    } else if (op->result == NXL_OK) {
        renewed(hold, now);
    } else {
        holding_failed(&hold->machine, now);
        lock->client->stats.renewal_failures++;
        trace_renewal(lock, op->result, hold->agent->message.data, now);
    }
    sleep_on(hold, holding_wake(&hold->machine));
}

/* ------------------------------------------------------------------ telling */

struct nxl_lock *hold_take_loss(struct nxl_client *client)
{
    struct list *node = list_pop(&client->losses);
    settle_descriptor(client);
    return node ? list_entry(node, struct hold, lost)->owner : NULL;
}

int nxl_client_loss_fd(nxl_client *client)
{
    if (!client || client_forked(client))
        return -1;
    client_lock(client);
    if (client->loss_fd < 0 && !client->closed)
        client->loss_fd = eventfd(
            !list_empty(&client->losses), EFD_NONBLOCK | EFD_CLOEXEC);
    int fd = client->loss_fd;
    client_unlock(client);
    return fd;
}

int nxl_lock_loss(const nxl_lock *lock, char *text, size_t size)
{
    if (text && size)
        text[0] = '\0';
    if (!lock || !lock->hold)
        return NXL_LOSS_NONE;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_LOSS_NONE;
    pthread_mutex_lock(&client->mutex);
    const struct hold *hold = lock->hold;
    bool told = hold->state == HOLD_OFF;
    int loss = told ? (int)hold->loss : NXL_LOSS_NONE;
    if (told && text && size)
        text_copy(&hold->why, text, size);
    pthread_mutex_unlock(&client->mutex);
    return loss;
}
