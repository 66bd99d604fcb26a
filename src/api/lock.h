/* SPDX-License-Identifier: MIT */
/*
 * What every call on a lock begins with, for both doors: is it allowed now,
 * are the arguments good? Then the operation is started, and the door waits
 * for its end or hands out an event.
 */
#ifndef NXLOCK_API_LOCK_H
#define NXLOCK_API_LOCK_H

#include "api/client.h"

/* An operation to start, as the public call was made. */
struct call {
    enum nxl_operation kind;
    enum door door;
    int64_t number;     /* ACQUIRE: wait_ms. EXTEND: ttl_ms */
    const char *token;  /* ADOPT */
    const nxl_holder *seen; /* BREAK */
    struct question *ask;   /* OP_ASK */
};

/* Needs the client's mutex (and that the client is not forked). NXL_PENDING:
 * it was started, and may already be over (then it is not running). Else the
 * call's result; lock->message tells. */
int lock_call(struct nxl_lock *lock, const struct call *call, uint64_t now);

/* The blocking door: the call from its start to its result. */
int lock_block(struct nxl_lock *lock, const struct call *call);

/* The first call of a kind fixes the door. false: it is the other one's. */
bool client_enter(struct nxl_client *client, enum door door);

/* Drops one reference; the last one frees. */
void client_unref(struct nxl_client *client);

#endif
