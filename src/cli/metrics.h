/* SPDX-License-Identifier: MIT */
/*
 * --metrics: adds what became of this run to a file for monitoring, in the text
 * format of Prometheus.
 *
 * Invariant: the file is written at the end, after the lock was released, and
 * whether that succeeds does not change the run or its exit code. If nxlock was
 * killed, the watchdog writes it.
 */
#ifndef NXLOCK_CLI_METRICS_H
#define NXLOCK_CLI_METRICS_H

#include <nxlock.h>

#include "cli/args.h"

/* With --metrics, counts the events from now on, and writes the file at the
 * last one, EVENT_ENDED. Call event_begin() before. */
void metrics_begin(const struct args *args);

/* Notes the counters of the client that had the lock; before event_end(). */
void metrics_note(nxl_client *client);

#endif
