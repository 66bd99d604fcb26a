/* SPDX-License-Identifier: MIT */
/* What an inspection found, handed out as a copy that stands by itself. */
#include "api/client.h"
#include "wire/timestamp.h"

int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder)
{
    if (!lock || !holder)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->operation.kind == NXL_OP_INSPECT && !lock->operation.running &&
        lock->operation.result == NXL_FREE)
        return NXL_FREE;
    if (!lock->seen.size)
        return NXL_E_INVALID;
    *holder = lock->seen;
    holder->label =
        token_label((struct slice){holder->value, holder->value_length});
    return NXL_OK;
}

bool nxl_holder_is(const nxl_holder *holder, const char *token)
{
    return holder && token &&
           value_is_of((struct slice){holder->value, holder->value_length},
               slice_of(token));
}
