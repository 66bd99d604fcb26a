/* SPDX-License-Identifier: MIT */
/* Break: forcibly removes a value that an inspection has found. */
#include <stdlib.h>

#include "api/blocking.h"
#include "api/event_loop.h"
#include "api/holder.h"
#include "lock/drive.h"
#include "lock/errmsg.h"
#include "wire/value.h"

static int start_break(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    const nxl_holder *seen = args->seen;
    if (seen && holder_check(seen, call_errmsg(lock)) != NXL_OK)
        return NXL_E_INVALID;
    if (!seen || seen->value_length == 0)
        return errmsg_invalid(call_errmsg(lock),
            "nothing to break; pass a holder filled in by "
            "nxl_lock_inspect()");
    if (seen->truncated || seen->value_length >= sizeof(seen->value))
        return errmsg_invalid(call_errmsg(lock),
            "the value is longer than %zu bytes: not a lock, and too long "
            "to compare",
            sizeof(seen->value) - 1);
    char *value = realloc(lock->target, seen->value_length);
    if (!value)
        return call_ends(lock, NXL_E_NOMEM,
            "out of memory: cannot store the value to remove");
    memcpy(value, seen->value, seen->value_length);
    lock->target = value;
    lock->target_len = (uint16_t)seen->value_length;
    struct slice target = {lock->target, lock->target_len};
    bool own = value_is_of(target, lock_token(lock));
    if (!life_break(&lock->life, own, lock_seed(lock, now), now))
        return call_ends(lock, NXL_LOST,
            "the value is this handle's own, and its lease has expired: "
            "another process may have adopted it; break it with another "
            "handle");
    return NXL_PENDING;
}

static const struct call_type break_type = {.kind = NXL_OP_BREAK,
    .request = "removal",
    .lease = LEASE_ANY,
    .start = start_break};

int nxl_lock_break(nxl_lock *lock, const nxl_holder *seen)
{
    struct call_args args = {.seen = seen};
    return call_block(lock, &break_type, &args);
}

int nxl_lock_break_start(nxl_lock *lock, const nxl_holder *seen)
{
    struct call_args args = {.seen = seen};
    return call_enqueue(lock, &break_type, &args);
}
