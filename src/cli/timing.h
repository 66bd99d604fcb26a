/* SPDX-License-Identifier: MIT */
/*
 * The times of a run: whether a command can be stopped before its lease ends,
 * whatever happens and whenever it begins.
 */
#ifndef NXLOCK_CLI_TIMING_H
#define NXLOCK_CLI_TIMING_H

#include "cli/args.h"

/* For commands that ask for a lease: is it allowed? Lowers the default of --ttl
 * to max_ttl_ms of the URLs. 0, or an exit code after saying which option asks
 * for too much. */
int timing_limit(struct args *args);

/* After that: settles the times of run that the command line leaves open, the
 * grace and the time-out of a request. 0, or an exit code after saying which of
 * them exclude each other. */
int timing_settle(struct args *args);

/* Can the command be stopped in time? Else EXIT_USAGE, after saying why not. */
int timing_check(const struct args *args);

/* KILL comes so long before the end of the lease, in ms. */
int64_t timing_margin_ms(const struct args *args);

#endif
