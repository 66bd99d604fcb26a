/* SPDX-License-Identifier: MIT */
/*
 * Describes all holders of a lock: one, if it is exclusive, or several that
 * share it or have permits.
 */
#ifndef NXLOCK_CLI_LOOK_HOLDERS_H
#define NXLOCK_CLI_LOOK_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/args.h"
#include "cli/look/holder.h"
#include "model/token.h"

/* What holders have in all. */
struct holding {
    size_t count;
    bool partial;    /* there may be more of them */
    int64_t used;    /* permits that they have */
    int64_t permits; /* the least limit of them; 0: none */
};

/* What an inspection has found. It points to itself and owns a list:
 * holders_free(). */
struct holders {
    nxl_holder first;    /* the one whose lease ends last */
    bool shared;         /* others may hold it too; if not, list is NULL */
    size_t servers;      /* those in the list are of all of them */
    nxl_holder *list;    /* that one first */
    struct holding held; /* by that one, or by those in the list */
    int64_t least_ms;    /* until the first lease ends; -1: never */
};

/* Reads what the inspection of the lock that has just ended with that result
 * has found, if it was NXL_OK. Returns the result, or an error; then *holders
 * is empty. */
int holders_take(struct holders *holders, struct session *session,
    const nxl_lock *lock, int result);
/* Inspects the session's lock, and reads. Results of nxl_lock_inspect(). */
int holders_ask(struct session *session, struct holders *holders);
/* The same by the blocking API. */
int holders_look(struct session *session, struct holders *holders);
void holders_free(struct holders *holders);

/* Holder i of count. */
const nxl_holder *holders_at(const struct holders *holders, size_t i);
/* Forgets all but that one. */
void holders_keep(struct holders *holders, size_t i);
/* So much time has passed since the inspection. */
void holders_subtract(struct holders *holders, int64_t ms);

/* The share that the command line asks for. */
struct share holders_wanted(const struct args *args);

/* Could a lock of this share be granted beside them? */
bool holders_leave_room(const struct holders *holders, struct share wanted);

/* Are enclosing runs among them (NXLOCK_TOKEN, NXLOCK_OUTER) that leave no room
 * for it? Then waiting without a limit would deadlock. */
bool holders_around(const struct holders *holders, struct share wanted);

/* Writes "held by db7:41233:backup, 12s left" or "held by 3 holders, 3 of 4
 * permits" into out, of HOLDER_WORDS bytes. */
const char *holders_words(char *out, const struct holders *holders);
/* Writes who holds it, "db7:41233:backup" or "3 holders", into out, of
 * HOLDER_WHO bytes. */
const char *holders_who(char *out, const struct holders *holders);
/* The same and what they have, "3 holders, 3 of 4 permits", into out, of
 * HOLDER_WORDS bytes; without the latter for an exclusive lock. */
const char *holders_owner(char *out, const struct holders *holders);
/* Writes "3 of 4 permits", or "shared", into out, of HOLDERS_SHARE bytes. */
#define HOLDERS_SHARE 64
const char *holders_share(char *out, int64_t used, int64_t permits);

/* Writes what one of them holds, "6fa459ea db7:41233:backup, 1 permit, 12s
 * left", into out, of HOLDER_WORDS bytes. The 8 characters identify it for
 * unlock. Its limit is there if that of all is another one. */
const char *holders_row(
    char *out, const struct holders *holders, const nxl_holder *holder);
/* Writes its permits, or those a waiter asks for, as members; none if it holds
 * the lock alone. */
void holders_json_share(struct json *json, const nxl_holder *holder);
/* Writes what they have in all as members; not for an exclusive lock. */
void holders_json_held(struct json *json, const struct holding *held);
/* The same, and a list of them. */
void holders_json(struct json *json, const struct holders *holders);

#endif
