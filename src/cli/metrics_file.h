/* SPDX-License-Identifier: MIT */
/*
 * The file of --metrics, which several runs may share.
 *
 * Invariant: whoever opens the file reads all of it, as one run wrote it; no
 * run's numbers are lost to another; and what is not a file of ours stays as
 * it is.
 */
#ifndef NXLOCK_CLI_METRICS_FILE_H
#define NXLOCK_CLI_METRICS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/metrics_table.h"

/* Changes the row of a lock in the file at path: reads the file, calls change
 * and writes the file anew. Waits at most 5 s for others that write a file in
 * the same directory. False: nothing was changed, and the reason, with what to
 * do, is in why. */
bool metrics_update(const char *path, const char *name,
    void (*change)(struct metrics_row *row), char *why, size_t size);

#endif
