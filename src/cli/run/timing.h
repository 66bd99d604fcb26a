/* SPDX-License-Identifier: MIT */
/*
 * The times of a run: whether a command can be stopped before its lease ends,
 * whatever happens and whenever it begins.
 */
#ifndef NXLOCK_CLI_RUN_TIMING_H
#define NXLOCK_CLI_RUN_TIMING_H

#include "cli/args.h"

/* For commands that need a lease: checks that it is not too long, and lowers
 * the default of --ttl to max_ttl_ms of the URLs. 0, or an exit code after
 * reporting which option asks for too much. */
int timing_limit(struct args *args);

/* After timing_limit(): sets the times of run that the command line leaves
 * open, the grace and the timeout of a request. 0, or an exit code after
 * reporting which times contradict each other. */
int timing_settle(struct args *args);

/* 0 if the command can be stopped in time; otherwise EXIT_USAGE, after
 * reporting why not. */
int timing_check(const struct args *args);

/* How long before the end of the lease KILL is sent, in ms. */
int64_t timing_margin_ms(const struct args *args);

#endif
