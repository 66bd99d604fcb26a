/* SPDX-License-Identifier: MIT */
/*
 * What nxlock-sim is asked for: read from its command line, and written back
 * as the command that asks for one world of it again.
 */
#ifndef NXLOCK_SIM_ARGUMENTS_H
#define NXLOCK_SIM_ARGUMENTS_H

#include "model/guard.h"
#include "sim/world.h"

struct arguments {
    struct options options;
    uint64_t from, count; /* seeds */
    unsigned servers[MAX_SERVERS];
    unsigned servers_count;
    const char *faults;
    const char *without[GUARDS + SIM_GUARDS];
    unsigned without_count;
};

/* Reads them, and turns guards off. Help was asked for: it is on stdout.
 * Wrong: what is wrong, and what is allowed, is on stderr. */
enum arguments_result { ARGUMENTS_READ, ARGUMENTS_HELP, ARGUMENTS_WRONG };
enum arguments_result arguments_read(
    struct arguments *a, int argc, char **argv);

/* "nxlock-sim --seed 5 ...": the world of options, with all that is shown. */
void arguments_print(
    const struct arguments *a, const struct options *options, FILE *out);

#endif
