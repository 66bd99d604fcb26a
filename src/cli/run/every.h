/* SPDX-License-Identifier: MIT */
/*
 * --every: one run in a period, on whatever machine. A run is recorded by a
 * second lock, {NAME}:every at the server (NAME:every, if NAME has a tag in
 * braces), which expires after nine tenths of the period.
 */
#ifndef NXLOCK_CLI_RUN_EVERY_H
#define NXLOCK_CLI_RUN_EVERY_H

#include "cli/run/session.h"

/* Records this run, while the session's lock is held. False: it is not due, or
 * that is unknown; *code is the exit code, and the reason has been reported
 * (that it is not due only on a terminal or with -v). May block for the timeout
 * of a request. */
bool every_mark(struct session *session, int *code);

/* Is this the name of such a mark? */
bool every_is_mark(const char *name, size_t length);

/* Removes the mark, so that another machine may run the job at once. */
void every_give_back(void);

#endif
