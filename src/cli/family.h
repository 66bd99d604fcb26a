/* SPDX-License-Identifier: MIT */
/*
 * The processes that descend from this one. It has to be their subreaper
 * (prctl), so that none of them leaves the family.
 */
#ifndef NXLOCK_CLI_FAMILY_H
#define NXLOCK_CLI_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Children that are to be left alone. */
struct spared {
    pid_t *pids; /* owned */
    size_t count;
};

/* Spares the children that this process has now: an exec by a shell script
 * hands its background jobs over. False: no memory. */
bool family_spare(struct spared *spared);
void family_free(struct spared *spared);

/* Sends signo, and CONT so that a stopped one acts on it, to every descendant
 * that is not in the process group except. Who cannot be signalled without
 * doubt whether it is still the same process is left out. */
void family_signal(int signo, pid_t except);

/* Sends KILL to every child but the spared (NULL: none is), and says how many
 * children there were, those included that have ended but are not reaped;
 * with reap they are. The children of those are ours then: to be repeated
 * until it is 0, and then there is no descendant any more. */
size_t family_kill(const struct spared *spared, bool reap);

#endif
