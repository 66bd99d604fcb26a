/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a debt ends only when its token can not stand at the server any
 * more, and none of its commands can remove another token. A script goes with
 * its text, which saves a round trip after a restart.
 */
#include "net/debt.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "base/guard.h"
#include "wire/command.h"

#define FIRST_INTERVAL (20 * NS_PER_MS)
#define LAST_INTERVAL NS_PER_S
#define STAMP_SLACK_MS UINT64_C(5000)

struct debt *debt_new(struct slice key, size_t token_room)
{
    struct debt *d = calloc(1, sizeof *d + key.len + token_room);
    if (!d)
        return NULL;
    list_init(&d->node);
    list_init(&d->owed);
    memcpy(d->bytes, key.data, key.len);
    d->verb.kind = VERB_RELEASE;
    d->verb.key = (struct slice){d->bytes, key.len};
    d->verb.token = (struct slice){d->bytes + key.len, 0};
    return d;
}

void debt_free(struct debt *d)
{
    if (!d)
        return;
    list_remove(&d->node);
    list_remove(&d->owed);
    free(d);
}

void debt_incur(struct debt *d, struct slice token, uint32_t ttl_ms,
    bool may_come, uint64_t now)
{
    memcpy(d->bytes + d->verb.key.len, token.data, token.len);
    d->verb.token.len = token.len;
    d->state = DEBT_OWED;
    d->may_come = may_come;
    /* The time in a value of ours is later than the lease's end. */
    d->ttl_ns = ms_to_ns(ttl_ms + (d->exchange.stamped ? STAMP_SLACK_MS : 0));
    d->next_try = now;
    d->interval = FIRST_INTERVAL;
    d->until = may_come ? NEVER : deadline_after(now, d->ttl_ns);
}

/* Ids are given anew after a restart: only the same process is asked to end
 * the old connection. */
static bool wants_kill(const struct debt *d, const struct facts *facts)
{
    return d->may_come && !d->exact && !d->killed && d->old_client && facts &&
           facts->run_id[0] &&
           memcmp(facts->run_id, d->old_run_id, sizeof d->old_run_id) == 0 &&
           guarded(GUARD_KILL);
}

/* Appends the compare-and-delete's present step and its slots. */
static bool format(
    struct debt *d, struct conn *c, struct ladder *ladder, uint64_t now)
{
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, EXCHANGE_REPLIES) ||
        !exchange_may_go(&d->exchange, ladder))
        return false;
    ladder->now = now;
    unsigned due = exchange_encode(&d->exchange, ladder, &c->out);
    for (unsigned i = 0; i < due; i++)
        slots_push(&c->slots, (struct slot){SLOT_DEBT, d, now,
                                  i == 0 ? buf_len(&c->out) - before : 0});
    return due > 0;
}

/* Appends its commands; both or nothing, for a slot that is left behind would
 * outlive the debt. */
static bool format_all(struct debt *d, struct conn *c, struct ladder *ladder,
    const struct facts *facts, uint64_t now)
{
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, 1 + EXCHANGE_REPLIES))
        return false;
    exchange_go_on(&d->exchange, &d->verb, NULL);
    d->exchange.whole = true;
    if (!wants_kill(d, facts))
        return format(d, c, ladder, now);
    if (!command_client_kill(&c->out, d->old_client))
        return false;
    size_t killing = buf_len(&c->out) - before;
    slots_push(&c->slots, (struct slot){SLOT_KILL, d, now, killing});
    if (format(d, c, ladder, now))
        return true;
    slots_unpush(&c->slots);
    buf_cut(&c->out, before, killing);
    return false;
}

static void try_later(struct debt *d, uint64_t now)
{
    d->next_try = deadline_after(now, d->interval);
    d->interval = earlier(2 * d->interval, LAST_INTERVAL);
}

bool debt_send(struct debt *d, struct conn *c, struct ladder *ladder,
    const struct facts *facts, uint64_t now)
{
    if (!format_all(d, c, ladder, facts, now)) {
        try_later(d, now);
        return false;
    }
    d->state = DEBT_SENT;
    list_remove(&d->owed);
    return true;
}

void debt_kill_answered(struct debt *d, const struct reply *reply)
{
    /* 0 says that the server has no such connection any more: it has read
     * and done all that came on it, or thrown it away. */
    if (reply->kind == REPLY_INTEGER)
        d->killed = true;
}

enum debt_answer debt_answered(struct debt *d, const struct reply *reply,
    struct conn *c, struct ladder *ladder, uint64_t now)
{
    const struct outcome *o = &d->exchange.outcome;
    enum exchange_next next = exchange_reply(&d->exchange, reply);
    if (next == EXCHANGE_WAIT)
        return DEBT_WAITS;
    if (next == EXCHANGE_AGAIN && format(d, c, ladder, now))
        return DEBT_WAITS;
    d->state = DEBT_OWED;
    if (next == EXCHANGE_DONE && o->kind != OUTCOME_FAULT &&
        (o->kind == OUTCOME_MINE || !d->may_come || d->exact || d->killed))
        return DEBT_PAID;
    if (next == EXCHANGE_DONE && o->kind == OUTCOME_FAULT && d->until == NEVER)
        d->until = deadline_after(now, d->ttl_ns);
    try_later(d, now);
    return debt_over(d, now) ? DEBT_PAID : DEBT_STANDS;
}

void debt_acquire_answered(struct debt *d, uint64_t now)
{
    d->may_come = false;
    if (d->until == NEVER)
        d->until = deadline_after(now, d->ttl_ns);
}

void debt_acquire_refused(struct debt *d, uint64_t now)
{
    d->may_come = false;
    d->until = now;
}

void debt_cut_off(
    struct debt *d, int64_t client_id, const char *run_id, uint64_t now)
{
    if (!d->cut)
        d->next_try = now;
    else if (d->state == DEBT_SENT) /* two slots of it are one failure */
        try_later(d, now);
    d->cut = true;
    d->state = DEBT_OWED;
    if (d->until == NEVER)
        d->until = deadline_after(now, d->ttl_ns);
    if (!d->exact) /* its acquire went on an older connection than this */
        return;
    d->exact = false;
    d->old_client = client_id;
    memcpy(d->old_run_id, run_id, sizeof d->old_run_id);
}

bool debt_over(const struct debt *d, uint64_t now)
{
    return now >= d->until;
}
