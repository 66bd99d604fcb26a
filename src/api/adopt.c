/* SPDX-License-Identifier: MIT */
/* Adopt: takes over a lock that another handle has acquired, by its token. */
#include "api/blocking.h"

#include <stdlib.h>

#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/message.h"
#include "lock/once.h"

static int start_adopt(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    const char *token = args->token;
    if (!token || !token_valid(slice_of(token)))
        return message_invalid(call_message(lock),
            "not a token; pass UUID, UUID@label or UUID+weight/permits@label "
            "as returned by nxl_lock_token()");
    if (!lock->adopted_token)
        lock->adopted_token = malloc(TOKEN_MAX + 1);
    if (!lock->adopted_token)
        return call_ends(
            lock, NXL_E_NOMEM, "out of memory: cannot adopt the lock");
    bool own = strcmp(lock->token, token) == 0;
    if (!own) /* else its work can be told of even if this fails */
        once_reset(lock);
    lock->adopts = token;
    life_adopt(&lock->life, own, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type adopt_type = {.kind = NXL_OP_ADOPT,
    .request = "request",
    .lease = LEASE_UNWANTED,
    .start = start_adopt};

int nxl_lock_adopt(nxl_lock *lock, const char *token)
{
    struct call_args args = {.token = token};
    return call_block(lock, &adopt_type, &args);
}

int nxl_lock_adopt_start(nxl_lock *lock, const char *token)
{
    struct call_args args = {.token = token};
    return call_enqueue(lock, &adopt_type, &args);
}
