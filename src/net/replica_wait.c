/* SPDX-License-Identifier: MIT */
/*
 * When WAIT is sent, for how long it waits, and what it says.
 *
 * Invariant: behind each command that needs_copies there is a WAIT on the same
 * connection before anything else is formatted but the next step of a request.
 */
#include "net/replica_wait.h"

#include <stdio.h>

#include "base/deadline.h"
#include "wire/command.h"

/* While WAIT blocks the connection, no other lock can be renewed over it, and
 * no waiter keep its place: so it takes a small part of the shortest ttl. */
#define WAITS_PER_TTL 20
#define WAIT_MIN_MS 50
#define WAIT_MAX_MS 500
/* (With several servers half of it: core/calls.c gives each of them this share
 * of the ttl for its answer, and another WAIT may be before it.) */
/* Files are written every second, and replicas say once a second what is in
 * theirs: with less, nothing would ever count. */
#define WAITAOF_MS 1500

void replica_wait_init(struct replica_wait *r)
{
    *r = (struct replica_wait){.due = false};
    list_init(&r->awaiting);
    list_init(&r->ready);
}

void replica_wait_note(
    struct replica_wait *r, const struct verb *verb, uint64_t now)
{
    r->due = r->due || verb_traits[verb->kind].needs_copies;
    if (verb->ttl_ms == 0 ||
        (verb->ttl_ms > r->shortest_ms && now < r->shortest_until))
        return;
    r->shortest_ms = verb->ttl_ms;
    r->shortest_until = deadline_after_ms(now, verb->ttl_ms);
}

uint32_t replica_wait_ms(const struct replica_wait *r, uint32_t ttl_ms)
{
    uint64_t share = ttl_ms / WAITS_PER_TTL;
    if (!r->in_use)
        return 0;
    if (r->ms)
        return r->ms;
    share = earlier(later(share, WAIT_MIN_MS), WAIT_MAX_MS);
    if (r->aof)
        share = WAITAOF_MS;
    else if (r->several_servers)
        share /= 2;
    return (uint32_t)later(earlier(share, r->most_ms), 1);
}

bool replica_wait_ask(struct replica_wait *r, struct conn *c, uint64_t now)
{
    char count[12], ms[12];
    r->asked_ms = replica_wait_ms(r, r->shortest_ms);
    snprintf(count, sizeof(count), "%u", r->wanted);
    snprintf(ms, sizeof(ms), "%u", (unsigned)r->asked_ms);
    const struct slice wait[] = {
        slice_of("WAIT"), slice_of(count), slice_of(ms)};
    const struct slice waitaof[] = {
        slice_of("WAITAOF"), slice_of("1"), slice_of(count), slice_of(ms)};
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, 1) ||
        !command_append(&c->out, r->aof ? 4 : 3, r->aof ? waitaof : wait))
        return false;
    slots_push(
        &c->slots, SLOT_REPLICA_WAIT, NULL, now, buf_len(&c->out) - before);
    r->due = false;
    r->under_way++;
    return true;
}

bool replica_wait_answered(
    struct replica_wait *r, const struct reply *reply, struct copies *copies)
{
    const struct reply *replicas = reply;
    bool synced = false;
    r->under_way--;
    if (r->aof) {
        if (reply->kind != REPLY_ARRAY || reply->count != 2 ||
            reply->items[0].kind != REPLY_INTEGER)
            return false;
        synced = reply->items[0].integer >= 1;
        replicas = &reply->items[1];
    }
    if (replicas->kind != REPLY_INTEGER || replicas->integer < 0 ||
        replicas->integer > UINT16_MAX)
        return false;
    *copies = (struct copies){.known = true,
        .synced = synced,
        .replicas = (uint16_t)replicas->integer};
    return true;
}

void replica_wait_cut_off(struct replica_wait *r)
{
    r->due = false;
    r->under_way = 0;
}
