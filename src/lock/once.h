/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: what a lock keeps of its record, between the
 * calls of nxl_once_begin(), nxl_once_tell() and nxl_once_forget(). All
 * functions need the client's mutex.
 *
 * Invariant: a verdict is accepted only about work that this handle began (and
 * whose caller has the result), whose token it adopted, or that it found in
 * doubt.
 */
#ifndef NXLOCK_LOCK_ONCE_H
#define NXLOCK_LOCK_ONCE_H

#include "lock/handle.h"
#include "wire/record.h"

/* Whose work a verdict would be about. */
enum once_work {
    WORK_NONE,
    WORK_OWN,  /* that of the lock's own token */
    WORK_FOUND /* that of the record's token, which was in doubt */
};

struct once {
    struct once_terms terms; /* of the present call */
    enum once_work work;
    char fingerprint[FINGERPRINT_MAX + 1];
    char *result; /* that is being told, a copy */
    /* What the record's first line was before this handle began its work, if
     * that was in doubt; NULL: it was not, or there was no memory. */
    char *before;
    /* What the last call has found or written. */
    bool answered;
    struct reply_values
        found;            /* a code, a number, the first line, the result */
    struct record record; /* its first line; with zeros behind the texts */
    char token[TOKEN_MAX + 1];
    char found_fingerprint[FINGERPRINT_MAX + 1];
};

/* Returns what the lock keeps, and allocates it if necessary. NULL: no memory.
 */
struct once *once_of(struct nxl_lock *lock);
void once_free(struct nxl_lock *lock);
/* The first line of the record that was found; empty: none was. */
struct slice once_line(const struct once *once);

/* Completes a verb that is about to be sent and uses a record. */
void once_complete(struct nxl_lock *lock, struct verb *verb);
/* TELL: the token of which it tells. */
struct slice once_token(const struct nxl_lock *lock);

/* Forgets work that is no longer the handle's. */
void once_forget_work(struct once *once);
/* The lock gets another token: forgets what was kept about the last one. */
void once_reset(struct nxl_lock *lock);
/* A call is over, whatever its kind: notes what it has found, and whose work a
 * verdict is about from now on. */
void once_over(struct nxl_lock *lock, int result);
/* The label in the token of a record; "": it has none. */
const char *once_label(const struct record *record);
/* Writes the message of a call of once whose result has its reason in the
 * record. False: it is another call or result. */
bool once_compose(
    const struct nxl_lock *lock, int result, struct text *message);

/* The caller of a call that is over has its result now. */
void once_seen(struct nxl_lock *lock);

#endif
