/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each returns the exit code and reports the reason if it is not
 * 0.
 */
#ifndef NXLOCK_CLI_COMMANDS_H
#define NXLOCK_CLI_COMMANDS_H

#include "cli/args.h"
#include "cli/run/environ.h"
#include "cli/run/session.h"

#define COMMAND(number, name, ...)                                             \
    int subcommand_##name(const struct args *args);
COMMAND_LIST
#undef COMMAND

/* Acquires the lock. False: not held, and *code is the exit code; the reason
 * has been reported, except for a busy lock without a terminal or -v. */
bool acquire_for(struct session *session, int *code);

/* How once begins. */
struct beginning {
    nxl_once_options options; /* mode RETRY: begin in doubt too */
    /* Set by acquire_once(): */
    int result; /* NXL_OK: begun; NXL_DONE, _DOUBT or _MISMATCH: not begun */
    bool begun; /* it is on record, so what comes of it must be recorded */
    struct attempt attempt;
};

/* The same for once, which begins a record with the lock. False: *code is the
 * exit code, but it may have begun. */
bool acquire_once(
    struct session *session, struct beginning *beginning, int *code);

#endif
