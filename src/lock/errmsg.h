/* SPDX-License-Identifier: MIT */
/*
 * Composes what errmsg says: the server, its words, the remedy, in that order.
 * Nothing is decided here: a report says what happened.
 *
 * Invariant: a message never holds a password, a token or an unprintable byte
 * of a server, and composing one cannot fail.
 */
#ifndef NXLOCK_LOCK_ERRMSG_H
#define NXLOCK_LOCK_ERRMSG_H

#include <nxlock.h>

#include "client/operation.h"
#include "lock/held_here.h"

#define ERRMSG_FORKED                                                          \
    "this handle was created before fork(); create a new one in the child"

enum nxl_result result_of_fault(enum fault fault);
/* Of the call that is over. */
int result_of_life(const struct life *life);

/* An operation that is over. */
struct report {
    const struct operation *operation;
    enum nxl_operation kind;
    int result;
    enum fault fault;      /* results below 0: the worst fault that was met */
    int64_t left_ms;       /* NXL_BUSY: of the holder's lease */
    bool waited;           /* it waited for all servers until its end */
    struct held_here here; /* NXL_BUSY: other handles of its client that hold
                            * the lock, as far as was looked */
};

/* Composes the message of a report; empty if there is nothing to say. A
 * failure's message becomes the client's as well. */
void errmsg_compose(const struct report *report, struct text *text);

/* Adds how the last operation failed at one server, or nothing. */
void errmsg_at(
    const struct operation *operation, unsigned server, struct text *text);

/* After a grant: adds which servers need repair or time, and why. *young: all
 * of them only need time. False: there are none. */
bool errmsg_minority(
    const struct operation *operation, bool *young, struct text *text);

/* The message of a call that was refused, without a full stop. Returns
 * NXL_E_INVALID. */
int errmsg_invalid(struct text *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
