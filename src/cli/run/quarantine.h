/* SPDX-License-Identifier: MIT */
/*
 * Servers that grant no lock for a while, because they restarted or were
 * promoted: how long a command has to wait for them.
 */
#ifndef NXLOCK_CLI_RUN_QUARANTINE_H
#define NXLOCK_CLI_RUN_QUARANTINE_H

#include <nxlock.h>

#include "cli/args.h"

#define QUARANTINE_WORDS 64

/* Writes "; -w 25s would wait for that" into out, which is returned, if result
 * is that of a command that waits with -w, enough servers will grant locks
 * soon, and the wait that was given is too short for that; else "". */
const char *quarantine_advice(char out[QUARANTINE_WORDS],
    const struct args *args, nxl_client *client, int result);

#endif
