/* SPDX-License-Identifier: MIT */
/*
 * Distinguishes a signal of the keyboard, which goes to a whole process group,
 * from one that was sent to a single process, by a process that does nothing
 * but be in that group.
 */
#ifndef NXLOCK_CLI_RUN_SIGNAL_PROBE_H
#define NXLOCK_CLI_RUN_SIGNAL_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts a probe in a group of our session. All signals must be blocked. 0:
 * there is no process for it. */
pid_t signal_probe_start(pid_t group);

/* Has the group got the signal since then? True, too, if that is unknown. */
bool signal_probe_saw(pid_t probe, int signo);

/* Ends the probe and reaps it; 0: there is none. */
void signal_probe_end(pid_t probe);

#endif
