/* SPDX-License-Identifier: MIT */
/*
 * The processes that descend from this one. It has to be their subreaper
 * (prctl), so that none of them leaves the family.
 */
#ifndef NXLOCK_CLI_DESCENDANTS_H
#define NXLOCK_CLI_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Children that are to be left alone. */
struct spared {
    pid_t *pids; /* owned */
    size_t count;
    bool unknown; /* there are some, but /proc does not show them */
};

/* Who is there still. */
struct left {
    size_t count; /* children that are not spared; at least so many */
    pid_t pid;    /* one of them, rather one that cannot be ended; 0: unknown */
    char state;   /* its letter in /proc */
    int error;    /* errno of the KILL to it, or 0 */
};

/* Does /proc show the processes that this one sees, with their numbers? If
 * not, no process is signalled or killed here. */
bool descendants_visible(void);

/* Spares the children that this process has now: an exec by a shell script
 * hands its background jobs over. False: no memory. */
bool descendants_spare(struct spared *spared);
void descendants_free(struct spared *spared);

/* Sends signo, and CONT so that a stopped one acts on it, to every descendant
 * that is not in the process group except. Who cannot be signalled without
 * doubt whether it is still the same process is left out. */
void descendants_signal(int signo, pid_t except);

/* Sends KILL to every descendant but the spared and theirs, and says who is
 * left, those included that have ended but are not reaped; with spared they
 * are (NULL: none is spared, and the caller reaps). What comes to be while
 * this looks is missed: to be repeated until it is 0, and then there is no
 * descendant any more. */
void descendants_kill(struct spared *spared, struct left *left);

#endif
