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
