/* SPDX-License-Identifier: MIT */
/*
 * The command line, understood: which command, which lock, with what.
 */
#ifndef NXLOCK_CLI_ARGS_H
#define NXLOCK_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/name.h"

enum command {
    CMD_RUN,
    CMD_ACQUIRE,
    CMD_RENEW,
    CMD_RELEASE,
    CMD_STATUS,
    CMD_WAIT,
    CMD_LIST,
    CMD_UNLOCK,
    CMD_DOCTOR
};

/* What a lost lock does to the command of run. */
#define ON_LOST_WARN 0 /* else the signal for it */

enum on_down { DOWN_FAILS, DOWN_SKIPS, DOWN_RUNS };
enum fence_wish { FENCE_IF_CAN, FENCE_MUST, FENCE_NONE };

/* Options of run alone; times in ms, 0 if they are not given. */
struct run_args {
    int64_t at_least_ms;
    int64_t at_most_ms;
    int64_t every_ms;
    int64_t grace_ms;   /* -1: not given, and not settled yet */
    int64_t request_ms; /* the time-out of a request that holds */
    int on_lost;        /* a signal, or ON_LOST_WARN */
    enum on_down on_down;
    enum fence_wish fence;
    bool retry_failed;
    bool leave;         /* what the command leaves behind runs on */
};

struct args {
    enum command command;
    const char *word;       /* the command as it was written */
    const char *name;       /* of the lock; list: GLOB. list, doctor: or NULL */
    char shown[NAME_SHOWN]; /* in messages */
    char pasted[NAME_PASTED]; /* in commands that are proposed */
    const char *token;      /* renew, release and unlock */
    char **child;           /* run: the words after "--", ends with NULL */
    const char *script;     /* -c, or NULL */
    char *shell[4];         /* then what child points to */
    const char *urls[NXL_SERVERS_MAX]; /* -u, as often as it was given */
    size_t url_count;
    char *query;            /* owned; "name=value&..." of the URL flags */
    int64_t wait_ms;        /* as nxl_lock_acquire() */
    int64_t ttl_ms;
    const char *ttl;        /* as it was written, or NULL */
    int64_t timeout_ms;     /* of a request, unless a URL says; 0: default */
    int64_t max_ttl_ms;     /* likewise, the longest lease */
    struct run_args run;
    int busy_code;
    bool once, waits;       /* -n and -w were given */
    bool force, yes;        /* unlock */
    bool verbose;
    bool json;
    bool help;
};

/* The lease when --ttl is not given: the library's own default, written out
 * because the child is told. */
#define DEFAULT_TTL_MS 30000

/* Takes name for the lock's. */
void args_name(struct args *args, const char *name);

/* Understands the words after the command word. 0, or EXIT_USAGE or
 * EXIT_INTERNAL after saying why; then *args is to be freed all the same. */
int args_parse(struct args *args, enum command command, char **words);
void args_free(struct args *args);

#endif
