/* SPDX-License-Identifier: MIT */
/*
 * Tells a signal of the keyboard, which goes to a whole process group, from one
 * that a process of the group sent itself, or got from another: by a process
 * that does nothing in the group but be there.
 */
#ifndef NXLOCK_CLI_WITNESS_H
#define NXLOCK_CLI_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts a witness in a group of our session. All signals must be blocked. 0:
 * there is no process for it. */
pid_t witness_start(pid_t group);

/* Has the group got the signal since then? True, too, if that is unknown. */
bool witness_saw(pid_t witness, int signo);

/* Ends the witness and reaps it; 0: there is none. */
void witness_end(pid_t witness);

#endif
