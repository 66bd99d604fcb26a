/* SPDX-License-Identifier: MIT */
/*
 * --every: one run in a period, on whatever machine. A run is recorded by a
 * second lock, {NAME}:every at the server (NAME:every, if NAME has a tag in
 * braces), which expires after nine tenths of the period.
 */
#ifndef NXLOCK_CLI_EVERY_H
#define NXLOCK_CLI_EVERY_H

#include "cli/session.h"

/* While the session's lock is held: records this run. False: it is not due, or
 * that cannot be told; *code is the exit code, and why not has been said if it
 * is to be said. May block for the time-out of a request. */
bool every_record(struct session *session, int *code);

/* Is that the name of such a second lock? */
bool every_is_record(const char *name, size_t length);

/* Another machine may run it at once. */
void every_give_back(void);

#endif
