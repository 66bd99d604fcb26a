/* SPDX-License-Identifier: MIT */
/*
 * A handle of several names: the front, which the program knows, and a member
 * for each name, a lock like any other that only the front makes calls on.
 * core/several.h decides when; this carries it out. All functions need the
 * client's mutex.
 *
 * The front has no requests: its call is over when those of the members are,
 * its message is that of the member that decided, and its lease is held as long
 * as those of all members are.
 *
 * Invariant: the front is held only while every member is, until the earliest
 * of their deadlines. No member is held without being renewed while others are
 * waited for.
 */
#ifndef NXLOCK_LOCK_MEMBERS_H
#define NXLOCK_LOCK_MEMBERS_H

#include "core/several.h"
#include "lock/call_type.h"
#include "lock/handle.h"

struct members {
    struct group group; /* first: lock->group of the front and of the members */
    struct several several;
    /* Of the present call: what begins it for a member. */
    const struct call_type *type;
    struct call_args args;
    bool is_running; /* actions are being carried out */
    bool has_waited; /* for one of the names, in the present call */
    bool renewed;    /* the members are, once all are held */
    uint64_t max_hold_ns;
    unsigned count;
    unsigned char given[SEVERAL_MAX]; /* the member of the caller's name i */
    struct nxl_lock *locks[];         /* in the order of their keys */
};

static inline struct members *members_of(const struct nxl_lock *lock)
{
    return (struct members *)lock->group;
}

/* Joins count locks, in the order of their keys, to a handle. False: no memory;
 * then nothing has changed. */
bool members_join(
    struct nxl_lock *front, struct nxl_lock *const *locks, unsigned count);

/* Begins an acquire by the names in turn. Returns NXL_PENDING. */
int members_acquire(struct nxl_lock *front, const struct call_type *type,
    uint64_t wait_ns, uint64_t now);
/* Begins a call that all members make at once, with these arguments, by
 * type->start(), which returns NXL_PENDING or NXL_LOST. Returns NXL_PENDING. */
int members_call(struct nxl_lock *front, const struct call_type *type,
    enum life_call call, const struct call_args *args, uint64_t now);

/* Ends the leases of all, as when an acquire begins. */
void members_end_leases(struct nxl_lock *front, uint64_t now);

/* The operation that a handle's message is about: of the member that decided,
 * or its own. */
const struct operation *members_operation(const struct nxl_lock *lock);

/* A name without the client's prefix. */
struct slice members_name(const struct nxl_lock *lock);

#endif
