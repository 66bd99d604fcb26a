/* SPDX-License-Identifier: MIT */
/* What an application reads of the record of work that must be done once. */
#include <stddef.h>
#include <string.h>

#include "lock/once.h"

_Static_assert((int)ONCE_BEGUN == (int)NXL_ONCE_BEGUN &&
                   (int)ONCE_DOUBT == (int)NXL_ONCE_DOUBT &&
                   (int)ONCE_DONE == (int)NXL_ONCE_DONE &&
                   (int)ONCE_FAILED == (int)NXL_ONCE_FAILED &&
                   (int)ONCE_CLEAR == (int)NXL_ONCE_CLEAR,
    "both enums have the same values");

static void show(const struct once *once, nxl_record *all)
{
    const struct record *r = &once->record;
    struct slice result = reply_values_at(&once->found, 3);
    all->state = (int)r->state;
    all->token = r->token.data;
    all->label = once_label(r);
    all->fence = r->fence;
    all->attempt = r->attempt;
    all->doubts = r->doubts;
    all->late = r->late;
    all->first_ms = r->first_ms;
    all->since_ms = r->since_ms;
    all->ended_ms = r->ended_ms;
    all->code = r->code;
    all->fingerprint = r->fingerprint.data;
    all->result_length = r->size < 0 ? NXL_ONCE_NOT_KEPT : (size_t)r->size;
    if (r->state != ONCE_DONE || r->size < 0 || !result.data)
        return;
    all->result = result.data;
    all->result_length = result.len;
}

int nxl_once_record(const nxl_lock *lock, nxl_record *record)
{
    nxl_record all = NXL_RECORD_INIT;
    if (!lock || !record || record->size < offsetof(nxl_record, token))
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    const struct once *once = lock->once;
    if (!once || !once->answered)
        return NXL_E_INVALID;
    if (once->record.state)
        show(once, &all);
    size_t size = record->size < sizeof(all) ? record->size : sizeof(all);
    all.size = record->size;
    memcpy(record, &all, size);
    return once->record.state ? NXL_OK : NXL_FREE;
}
