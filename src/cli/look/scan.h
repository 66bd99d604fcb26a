/* SPDX-License-Identifier: MIT */
/* Scans the keys of all servers for locks and records, for list. */
#ifndef NXLOCK_CLI_LOOK_SCAN_H
#define NXLOCK_CLI_LOOK_SCAN_H

#include "cli/look/holders.h"

/* A lock, or a record of nxlock once. */
struct found {
    char *name;
    char *token;         /* of the holder, or of who began the work */
    unsigned servers;    /* bit i is set if server i has it */
    int64_t left_ms;     /* -1: it never expires, or is a record */
    struct holding held; /* if several may hold it; otherwise a count of 0 */
    const char *state;   /* of a record; NULL: it is a lock */
    nxl_record record;   /* without its texts */
};

struct scan {
    struct session session;
    size_t servers;
    size_t scanned; /* servers that were scanned to the end */
    int code;       /* exit code for the first that was not; 0: none */
    struct found *list;
    size_t count;
    /* Of the server that is scanned now. */
    struct session solo; /* with a client for this server alone */
    size_t server;
    char why[512];     /* why its scan ended early */
    bool untyped;      /* its SCAN shows the keys of all types */
    bool key_denied;   /* the user may not read a key that matches glob */
    bool members_kept; /* the user may not read who shares a lock */
    bool records_kept; /* the user may not read a record */
};

/* Scans all servers of the session, and reports those that fail. A key may be
 * found more than once. The caller sets the session. */
void scan_servers(struct scan *scan);

void found_free(struct found *found);
void scan_free(struct scan *scan);

#endif
