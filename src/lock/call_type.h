/* SPDX-License-Identifier: MIT */
/*
 * The functions of each kind of call on a lock, one row each, and what starts
 * all of them in both modes. core/state.h has what the state machine does. Each
 * kind is in a file of its own, with its public functions.
 */
#ifndef NXLOCK_LOCK_CALL_TYPE_H
#define NXLOCK_LOCK_CALL_TYPE_H

#include "lock/handle.h"

struct call_args {
    /* ACQUIRE, ONCE_BEGIN: wait_ms. EXTEND: ttl_ms. ONCE_TELL: the verdict */
    int64_t number;
    const char *token;               /* ADOPT */
    const nxl_holder *seen;          /* BREAK; INSPECT: where to show it */
    const nxl_once_options *options; /* ONCE_BEGIN */
    int code;                        /* ONCE_TELL */
    const void *result;
    size_t length;
};

struct call_type {
    enum nxl_operation kind;
    const char *request; /* what a request of it is called in messages */
    enum { LEASE_ANY, LEASE_WANTED, LEASE_UNWANTED } lease;
    /* Checks the arguments and begins the call. Returns NXL_PENDING if it has
     * begun, else the call's result, explained in the lock's message. */
    int (*start)(
        struct nxl_lock *lock, const struct call_args *args, uint64_t now);
    /* The same for a handle of several names (lock/members.h); NULL: it has no
     * such call. */
    int (*start_several)(struct nxl_lock *front, const struct call_type *type,
        const struct call_args *args, uint64_t now);
};

/* Needs the client's mutex, and a client that is not forked. Returns
 * NXL_PENDING if the call was started; it may already be over (then it is not
 * running). Else returns the call's result, explained in the lock's message. */
int call_start(struct nxl_lock *lock, const struct call_type *type,
    enum mode mode, const struct call_args *args, uint64_t now);

/* For a row's start(): ends the call at once with result; words become its
 * message. */
int call_ends(struct nxl_lock *lock, int result, const char *words);
/* Likewise with NXL_LOST, for a call on a lock that is no longer held; call is
 * what it is called in the message. */
int call_ends_lost(struct nxl_lock *lock, const char *call, uint64_t now);
/* Likewise, for a call that may wait: checks wait_ms, and whether the call has
 * been interrupted before it began. NXL_OK: it may begin. */
int call_check_wait(
    struct nxl_lock *lock, int64_t wait_ms, uint64_t *wait_ns, uint64_t now);
static inline struct text *call_errmsg(struct nxl_lock *lock)
{
    return operation_errmsg(&lock->operation);
}

#endif
