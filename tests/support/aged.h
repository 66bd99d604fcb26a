/* SPDX-License-Identifier: MIT */
/*
 * A server of another version: stands before a real redis-server 7.0 and
 * makes it answer like one, by its exact words. Listens on a unix socket. What
 * a function orders is in force when it returns, for every command that has not
 * been passed on by then.
 *
 * A command is passed on when the one before it, of the same connection, was
 * answered: pipelining is fine, and no faster than asking one by one.
 * Commands are arrays of at most 64 bulk strings.
 *
 * Emulated: which of the commands that nxlock sends there are and with how many
 * arguments; TTL of a missing key; the lines of INFO that nxlock reads;
 * WRONGTYPE; of 2.6 also what a script may call, what it is answered, and how
 * its errors are wrapped. A command that is refused within MULTI does not abort
 * EXEC, as before 2.6.5.
 *
 * Not emulated: other texts of errors, which are in unit/scenes/errors.txt. Nor
 * the following, for the server behind is a 7.0: a watched key that expires
 * aborts EXEC (before 6.0 it did not); a ttl in seconds ends within a
 * millisecond of it, not within a second; replicas of 2.2 and 2.4 that may be
 * written to; an EXEC of 2.2 and 2.4 that runs on although the server itself
 * refused a command while queueing (OOM, NOPERM); the default eviction
 * policy; what came after 7.0. Rights are the server's own.
 */
#ifndef NXLOCK_TEST_AGED_H
#define NXLOCK_TEST_AGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/redis.h"

struct aged;

enum aged_profile {
    AGED_PLAIN, /* the server as it is */
    AGED_2_2,   /* 2.2.15: no scripts, no SET options, ttls in seconds */
    AGED_2_4,   /* 2.4.18: the same, with CLIENT LIST and run_id */
    AGED_2_6    /* 2.6.9: scripts, PEXPIRE, PTTL; no SET options */
};

/* Never NULL. The server may be restarted behind it. */
struct aged *aged_start(enum aged_profile profile, const struct redis *behind);
/* Cuts everything and frees; NULL is fine. */
void aged_stop(struct aged *a);

const char *aged_url(const struct aged *a); /* unix:///... */
const char *aged_path(const struct aged *a);

/* From now on another server answers, on the connections that there are too
 * (cut: they are closed, as by a failover). It has none of the scripts that
 * were loaded through another profile which emulates them (2.6). */
void aged_profile_now(struct aged *a, enum aged_profile profile, bool cut);

/* Replies for aged_refuse(). */
#define AGED_UNKNOWN "-ERR unknown command '%.*s'\r\n" /* rename-command */
#define AGED_NOPERM                                                            \
    "-NOPERM this user has no permissions to run the '%.*s' command\r\n"

/* Only these commands ("EVAL EVALSHA", in any case; NULL: none) are now
 * answered with reply and do not reach the server. The texts are not copied. */
void aged_refuse(struct aged *a, const char *commands, const char *reply);

/* How many commands came that begin so: "SET", "SET * * NX". The first word in
 * any case, the others exactly; * is any one argument. */
size_t aged_count(struct aged *a, const char *words);
/* All commands in the order in which they were taken up, "0 SET k v\n": the
 * connection, then the arguments (other bytes as \xNN, long ones cut). Valid
 * until the next call. */
const char *aged_log(struct aged *a);
void aged_forget(struct aged *a); /* empties the log, and so all counts */

/* Every command that was read is answered, and the answer passed on. */
bool aged_idle(struct aged *a);

#endif
