/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: what a lock keeps of its record, between the
 * calls of nxl_once_begin(), nxl_once_tell() and nxl_once_forget(). All
 * functions need the client's mutex.
 *
 * Invariant: only the work of a token can be told of that this handle began and
 * whose caller knows it, or that it adopted, or found in doubt.
 */
#ifndef NXLOCK_API_ONCE_H
#define NXLOCK_API_ONCE_H

#include "api/handle.h"
#include "wire/record.h"

/* Whose work can be told of? */
enum once_work {
    WORK_NONE,
    WORK_OWN,  /* of the lock's own token */
    WORK_FOUND /* of the record's, which was in doubt */
};

struct once {
    struct once_terms terms; /* of the present call */
    enum once_work work;
    char fingerprint[FINGERPRINT_MOST + 1];
    char *result; /* that is being told, a copy */
    /* What the record's first line was before this handle began its work, if
     * that was in doubt; NULL: it was not, or there was no memory. */
    char *before;
    /* What the last call has found or written. */
    bool answered;
    struct leaves found;  /* a code, a number, the first line, the result */
    struct record record; /* its first line; with zeros behind the texts */
    char token[TOKEN_MAX + 1];
    char found_fingerprint[FINGERPRINT_MOST + 1];
};

/* How long a record is kept unless the caller says something else. */
#define ONCE_KEEP_MS INT64_C(86400000)

/* The lock's, which is made if it has none. NULL: no memory. */
struct once *once_of(struct nxl_lock *lock);
void once_free(struct nxl_lock *lock);
/* The first line of the record that was found; empty: none was. */
struct slice once_line(const struct once *once);

/* Completes a verb that is about to be sent, if it is one of these. */
void once_complete(struct nxl_lock *lock, struct verb *verb);
/* TELL: the token of which it tells. */
struct slice once_token(const struct nxl_lock *lock);

/* What it keeps is about work that is no longer the handle's. */
void once_leave_work(struct once *once);
/* The lock gets another token: what it keeps was about the one before. */
void once_leave(struct nxl_lock *lock);
/* A call is over, whatever its kind: notes what it has found, and whose work
 * can be told of from now on. */
void once_over(struct nxl_lock *lock, int result);
/* Its message, if it is one of these, and the record is the reason for its
 * result. */
bool once_compose(
    const struct nxl_lock *lock, int result, struct text *message);

/* The caller of a call that is over has its result now. */
void once_seen(struct nxl_lock *lock);

#endif
