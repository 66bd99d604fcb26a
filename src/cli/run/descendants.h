/* SPDX-License-Identifier: MIT */
/*
 * The processes that descend from this one. This process must be their
 * subreaper (prctl), so that orphans become its children.
 */
#ifndef NXLOCK_CLI_RUN_DESCENDANTS_H
#define NXLOCK_CLI_RUN_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Children that are to be left alone. */
struct spared {
    pid_t *pids; /* owned */
    size_t count;
    bool unknown; /* there are some, but /proc does not show them */
};

/* What descendants_kill() could not end yet. */
struct left {
    size_t count; /* at least so many children that are not spared */
    pid_t pid;    /* one, preferably one that cannot be killed; 0: unknown */
    char state;   /* its state in /proc */
    int error;    /* errno of the KILL to it, or 0 */
};

/* Does /proc show the processes that this one sees, with their numbers? If
 * not, no process is signalled or killed here. */
bool descendants_visible(void);

/* Spares the children that this process has now: an exec by a shell script
 * hands its background jobs over. False: no memory. */
bool descendants_spare(struct spared *spared);
void descendants_free(struct spared *spared);

/* Sends signo to every descendant outside the process group except, and CONT so
 * that a stopped one acts on it. A process is left out if it might have been
 * replaced by another one with the same pid. */
void descendants_signal(int signo, pid_t except);

/* Sends KILL to every descendant except the spared ones and their descendants,
 * and sets *left. With spared it also reaps; with NULL none is spared, and the
 * caller must reap, because zombies count as left. Processes that are created
 * during the call are missed, so repeat it until left->count is 0: then no
 * descendant exists. */
void descendants_kill(struct spared *spared, struct left *left);

#endif
