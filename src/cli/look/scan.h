/* SPDX-License-Identifier: MIT */
/* Scans the keys of all servers for locks and records, for list. */
#ifndef NXLOCK_CLI_LOOK_SCAN_H
#define NXLOCK_CLI_LOOK_SCAN_H

#include "cli/look/lock_list.h"
#include "cli/run/session.h"

struct lister {
    struct session session;
    struct lock_list locks;
    const char *glob; /* the names that are wanted, as SCAN matches them */
    size_t servers;
    const char *prefix;
    bool all;        /* every name is wanted */
    size_t scanned;  /* servers that were scanned to the end */
    int code;        /* exit code for the first that was not; 0: none */
    const char *odd; /* the answer to which command was none; NULL: all were */
    bool no_right;   /* a record was found that this user may not read */
    bool no_members; /* the same of a lock that several may hold */
    bool untyped;    /* this server's SCAN shows the keys of all types */
};

/* Scans all servers of the session, and reports those that fail. The caller
 * sets session and glob. */
void scan_servers(struct lister *lister);

#endif
