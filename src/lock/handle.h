/* SPDX-License-Identifier: MIT */
/*
 * A lock handle: its options, its state machine (core/life.h), and the two
 * operations that carry out what the machine decides: the caller's, and the
 * renewal's. All functions need the client's mutex.
 *
 * Invariant: a lock has at most one call in progress; what a release and a
 * cleanup need is allocated before the acquire is sent. Only what some handles
 * never need is allocated later: messages, what an inspection finds, what
 * waiting in line needs, and the token that is adopted. Both tokens stay at the
 * same place in memory as long as the handle: verbs refer to them.
 */
#ifndef NXLOCK_LOCK_HANDLE_H
#define NXLOCK_LOCK_HANDLE_H

#include "client/call.h"
#include "client/operation.h"
#include "lock/inspection.h"
#include "lock/name.h"
#include "model/token.h"

/* What only a renewed lock has (options.renew). */
struct renewing {
    struct renewal renewal; /* a part of the lock's life */
    struct operation operation;
    struct inspection *inspected; /* who holds the name, after a loss */
    bool on, busy;                /* whether the client's counts include it */
    struct list lost; /* in client->losses until the event is taken */
    struct nxl_lock *lock;
    enum nxl_loss loss; /* its reason is the operation's message */
};

/* What the members of a handle of several names have in common, and the handle
 * itself, the front, with them: lock/members.h. The type is what the driver of
 * a lock does not know of them. */
struct group {
    const struct group_type *type;
    struct nxl_lock *front;
    struct nxl_lock **members;
};

struct group_type {
    /* The state machine of a member, or of the front, has run. */
    void (*ran)(struct nxl_lock *lock, uint64_t now);
    /* The call of a member is over, see its life. */
    void (*member_over)(struct nxl_lock *member, uint64_t now);
    /* The renewal of a member has found out that it is lost, and explained it.
     */
    void (*member_lost)(struct nxl_lock *member, uint64_t now);
    /* The renewal of a member may be due. */
    void (*renewal_due)(struct nxl_lock *member, uint64_t now);
    /* Of the front: as lock_cancel() and lock_end(); and its grant has expired,
     * or cannot be used. */
    void (*cancel)(struct nxl_lock *front, uint64_t now);
    void (*end)(struct nxl_lock *front, uint64_t now);
    void (*give_up)(struct nxl_lock *front, uint64_t now);
};

struct nxl_lock {
    struct nxl_client *client;
    struct list node; /* in client->locks */
    void *user;
    struct lock_name name;

    struct life life;
    struct call call;
    struct operation operation;   /* the call's */
    struct renewing *renewing;    /* NULL: it is not renewed */
    struct once *once;            /* NULL: it has nothing to do with a record */
    struct inspection *inspected; /* by the last inspect */
    struct group *group;          /* NULL: the handle has one name */

    uint64_t started_at;
    _Atomic uint64_t fence; /* fencing token of the last grant. Read without the
                             * mutex */

    unsigned attempts;           /* ACQUIRE, BEGIN: rounds that were traced */
    enum nxl_operation kind : 8; /* of the present call, or of the last one */
    uint8_t member;              /* its number in the group */
    uint8_t own_len;             /* of own_token */
    uint8_t token_len;
    uint16_t target_len;
    bool may_tell_adopted_work : 1; /* the token was adopted with its work */
    bool interrupted : 1;   /* nxl_lock_interrupt(): cancel the next acquire */
    bool token_is_used : 1; /* of a member: its acquire has had the token */
    bool token_wanted : 1;  /* likewise: it needs another one */
    bool asks_early : 1;    /* likewise: only if the key before is held */
    const char *adopts;  /* ADOPT: the token to adopt; valid during the call */
    char *token;         /* one of the next two */
    char *own_token;     /* behind the ballots; acquires write its UUID. Empty:
                          * nothing has been acquired */
    char *adopted_token; /* TOKEN_MAX + 1 bytes; NULL: it never adopted */
    char *target;        /* BREAK: the value to remove, of target_len bytes */
    struct ballot ballots[]; /* of its name, LIFE_BALLOTS a server */
};

static inline struct slice lock_token(const struct nxl_lock *lock)
{
    return (struct slice){lock->token, lock->token_len};
}

/* Is it one of several names of a handle, not a handle itself? */
static inline bool lock_is_member(const struct nxl_lock *lock)
{
    return lock->group && lock->group->front != lock;
}

/* Is it a handle of several names? */
static inline bool lock_is_front(const struct nxl_lock *lock)
{
    return lock->group && lock->group->front == lock;
}

/* The handle that the program knows. */
static inline struct nxl_lock *lock_handle(struct nxl_lock *lock)
{
    return lock->group ? lock->group->front : lock;
}

/* Is its call, or was its last one, one that may begin a lease? */
static inline bool lock_acquires(const struct nxl_lock *lock)
{
    return call_traits[lock->life.call].acquires;
}

#endif
