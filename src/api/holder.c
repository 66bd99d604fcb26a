/* SPDX-License-Identifier: MIT */
/* The holder that the last inspection of a lock found. */
#include "lock/handle.h"
#include "lock/message.h"
#include "wire/value.h"

static void copy_out(nxl_holder *to, const nxl_holder *from)
{
    *to = *from;
    to->label = token_label((struct slice){to->value, to->value_length});
}

int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder)
{
    if (!lock || !holder)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->kind == NXL_OP_INSPECT && !lock->call.running &&
        lock->call.result == NXL_FREE)
        return NXL_FREE;
    if (!lock->seen->chosen)
        return NXL_E_INVALID;
    copy_out(holder, lock->seen->chosen);
    holder->left_ms = lock->seen->left_ms;
    return NXL_OK;
}

int nxl_lock_holder_at(const nxl_lock *lock, size_t server, nxl_holder *holder)
{
    if (!lock || !holder)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->kind != NXL_OP_INSPECT || lock->call.running ||
        server >= lock->client->server_count)
        return NXL_E_INVALID;
    const struct note *n = &lock->operation.notes[server];
    switch (n->kind) {
    case NOTE_YES:
        copy_out(holder, lock->seen->at[server]);
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
    return holder && token &&
           value_is_of((struct slice){holder->value, holder->value_length},
               slice_of(token));
}
