/* SPDX-License-Identifier: MIT */
/*
 * Describes all holders of a lock: one, if it is exclusive, or several that
 * share it or have permits.
 */
#ifndef NXLOCK_CLI_HOLDERS_H
#define NXLOCK_CLI_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/args.h"
#include "cli/holder.h"

/* What an inspection has found. It points to itself and owns a list:
 * holders_free(). */
struct holders {
    nxl_holder first; /* the one whose lease ends last */
    bool shared;      /* others may hold it too; if not, list is NULL */
    bool partial;     /* there may be more than those in the list */
    nxl_holder *list; /* that one first */
    size_t count;     /* 1, or those in the list */
    int64_t used;     /* permits that they have */
    int64_t permits;  /* the least limit of them; 0: none */
    int64_t least_ms; /* until the first lease ends; -1: never */
};

/* Reads what the inspection of the lock that has just ended with NXL_OK has
 * found. NXL_OK; otherwise an error, and *holders is empty. */
int holders_read(struct holders *holders, const nxl_lock *lock);
/* Inspects the session's lock, and reads. Results of nxl_lock_inspect(). */
int holders_ask(struct session *session, struct holders *holders);
/* The same for a lock, by the blocking API. */
int holders_look(struct holders *holders, nxl_lock *lock);
void holders_free(struct holders *holders);

/* Could the lock that the command line asks for be granted beside them? */
bool holders_leave_room(const struct holders *holders, const struct args *args);

/* Are enclosing runs among them (NXLOCK_TOKEN, NXLOCK_OUTER) that leave no room
 * for it? Then waiting without a limit would deadlock. */
bool holders_around(const struct holders *holders, const struct args *args);

/* Writes "held by db7:41233:backup, 12s left" or "held by 3 holders, 3 of 4
 * permits" into out, of HOLDER_WORDS bytes. */
const char *holders_words(char *out, const struct holders *holders);
/* Writes who holds it, "db7:41233:backup" or "3 holders", into out, of
 * HOLDER_WHO bytes. */
const char *holders_who(char *out, const struct holders *holders);
/* Writes "3 of 4 permits", or "shared", into out, of HOLDERS_SHARE bytes. */
#define HOLDERS_SHARE 64
const char *holders_share(char *out, int64_t used, int64_t permits);

#endif
