/* SPDX-License-Identifier: MIT */
/* The holder that the last inspection of a lock found. */
#include "api/holder.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "lock/handle.h"
#include "lock/errmsg.h"
#include "model/token.h"
#include "wire/value.h"

bool holder_has_required_members(const nxl_holder *holder)
{
    return holder->size >= offsetof(nxl_holder, label);
}

int holder_check(const nxl_holder *holder, struct text *message)
{
    if (holder_has_required_members(holder))
        return NXL_OK;
    return errmsg_invalid(message,
        "nxl_holder.size is %zu; start from NXL_HOLDER_INIT", holder->size);
}

static void copy_out(nxl_holder *to, const nxl_holder *from, int64_t left_ms)
{
    nxl_holder all = *from;
    size_t size = to->size < sizeof(all) ? to->size : sizeof(all);
    struct slice token = {from->value, from->value_length};
    const char *label = token_label(token);
    struct share share = token_share(token);

    all.size = to->size;
    all.label = label ? to->value + (label - from->value) : NULL;
    all.left_ms = left_ms;
    all.weight = share.weight;
    all.permits = share.permits;
    memcpy(to, &all, size);
}

int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder)
{
    if (!lock || !holder || !holder_has_required_members(holder))
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->kind == NXL_OP_INSPECT && !lock->call.running &&
        lock->call.result == NXL_FREE)
        return NXL_FREE;
    if (!lock->inspected->chosen)
        return NXL_E_INVALID;
    copy_out(holder, lock->inspected->chosen, lock->inspected->left_ms);
    return NXL_OK;
}

/* Copies a holder that only the list of all of them has. */
static int copy_listed(
    const struct nxl_lock *lock, size_t index, nxl_holder *holder)
{
    const struct reply_values *listed = lock->inspected->listed;
    nxl_holder found = {.size = sizeof(found)};
    const nxl_holder *first = lock->inspected->by_server[0];
    if (!listed && lock->client->server_count == 1 &&
        token_has_share((struct slice){first->value, first->value_length}))
        return NXL_E_NOMEM; /* there may be more */
    if (!listed || 2 * index >= listed->count)
        return NXL_FREE;
    struct slice value = reply_values_at(listed, 2 * index);
    found.value_length = value.len < sizeof(found.value) - 1
                             ? value.len
                             : sizeof(found.value) - 1;
    found.truncated = found.value_length < value.len;
    memcpy(found.value, value.data, found.value_length);
    found.ours = lease_held(&lock->life.lease, clock_now()) &&
                 slice_equal(value, lock_token(lock));
    reply_values_number(listed, 2 * index + 1, &found.left_ms);
    copy_out(holder, &found, found.left_ms);
    return NXL_OK;
}

int nxl_lock_holder_at(
    const nxl_lock *lock, size_t server, size_t index, nxl_holder *holder)
{
    if (!lock || !holder || !holder_has_required_members(holder))
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->kind != NXL_OP_INSPECT || lock->call.running ||
        server >= lock->client->server_count)
        return NXL_E_INVALID;
    const struct note *n = &lock->operation.notes[server];
    switch (n->kind) {
    case NOTE_YES:
        if (index > 0)
            return copy_listed(lock, index, holder);
        copy_out(holder, lock->inspected->by_server[server],
            lock->inspected->by_server[server]->left_ms);
        return NXL_OK;
    case NOTE_NO:
        return NXL_FREE;
    case NOTE_FAULT:
        return (int)result_of_fault(n->fault);
    case NOTE_NONE:
    case NOTE_ASKED:
        break;
    }
    return NXL_E_UNREACHABLE;
}

bool nxl_holder_is(const nxl_holder *holder, const char *token)
{
    return holder && token && holder_has_required_members(holder) &&
           value_is_of((struct slice){holder->value, holder->value_length},
               slice_of(token));
}
