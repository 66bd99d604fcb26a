/* SPDX-License-Identifier: MIT */
/* Adopt: takes over a lock that another handle has acquired, by its token. */
#include "api/blocking.h"

#include <stdlib.h>

#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/members.h"
#include "lock/errmsg.h"
#include "lock/once.h"

/* Checks the token, and that there is room for one. */
static int check_token(struct nxl_lock *lock, const char *token)
{
    if (!token || !token_valid(slice_of(token)))
        return errmsg_invalid(call_errmsg(lock),
            "not a token; pass UUID, UUID@label or UUID+weight/permits@label "
            "as returned by nxl_lock_token()");
    return NXL_OK;
}

static bool make_room(struct nxl_lock *lock)
{
    if (!lock->adopted_token)
        lock->adopted_token = malloc(TOKEN_MAX + 1);
    return lock->adopted_token;
}

static int end_without_room(struct nxl_lock *lock)
{
    return call_ends(lock, NXL_E_NOMEM, "out of memory: cannot adopt the lock");
}

static int start_adopt(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    const char *token = args->token;
    int rc = check_token(lock, token);
    if (rc != NXL_OK)
        return rc;
    if (!make_room(lock))
        return end_without_room(lock);
    bool own = strcmp(lock->token, token) == 0;
    if (!own) /* else its work can be told of even if this fails */
        once_reset(lock);
    lock->adopts = token;
    life_adopt(&lock->life, own, lock_seed(lock, now), now);
    return NXL_PENDING;
}

/* All names are held under the one token. */
static int start_several(struct nxl_lock *front, const struct call_type *type,
    const struct call_args *args, uint64_t now)
{
    const struct members *m = members_of(front);
    int rc = check_token(front, args->token);
    if (rc != NXL_OK)
        return rc;
    bool room = make_room(front);
    for (unsigned i = 0; i < m->count && room; i++)
        room = make_room(m->locks[i]);
    if (!room)
        return end_without_room(front);
    lease_end(&front->life.lease, now);
    front->token = front->adopted_token;
    front->token_len = (uint8_t)strlen(args->token);
    memmove(front->token, args->token, front->token_len + 1U);
    return members_call(front, type, CALL_ADOPT,
        &(struct call_args){.token = front->token}, now);
}

static const struct call_type adopt_type = {.kind = NXL_OP_ADOPT,
    .request = "request",
    .lease = LEASE_UNWANTED,
    .start = start_adopt,
    .start_several = start_several};

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
