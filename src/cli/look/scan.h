/* SPDX-License-Identifier: MIT */
/* Scans the keys of all servers for locks and records, for list. */
#ifndef NXLOCK_CLI_LOOK_SCAN_H
#define NXLOCK_CLI_LOOK_SCAN_H

#include "cli/look/holders.h"

/* A lock, or a record of one. */
struct found {
    char *name; /* zero-terminated, but may contain zero bytes */
    size_t name_length;
    char *value;      /* a token, or a record's header, zero-terminated */
    unsigned servers; /* bit i is set if server i has it */
    int64_t left_ms;  /* -1: no TTL */
    struct holding
        held; /* if several may hold it; a count of 0: it is exclusive */
};

struct scan {
    struct session session;
    const char *glob; /* the names that are wanted, as SCAN matches them */
    size_t servers;
    size_t scanned; /* servers that were scanned to the end */
    int code;       /* exit code for the first that was not; 0: none */
    struct found *list;
    size_t count, room;
    /* Of the server that is scanned now. */
    const char *prefix;
    size_t server;
    const char *odd; /* the answer to which command was none; NULL: all were */
    bool untyped;    /* its SCAN shows the keys of all types */
    bool key_denied; /* the user may not read a key that matches glob */
    bool members_kept; /* the user may not read who shares a lock */
    bool records_kept; /* the user may not read a record */
};

/* Scans all servers of the session, and reports those that fail. A key may be
 * found more than once. The caller sets session and glob. */
void scan_servers(struct scan *scan);

void found_free(struct found *found);
void scan_free(struct scan *scan);

#endif
