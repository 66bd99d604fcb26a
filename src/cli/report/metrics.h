/* SPDX-License-Identifier: MIT */
/*
 * --metrics DIR: writes how the last run of a lock ended, and when the last one
 * succeeded, for the textfile collector of Prometheus's node_exporter.
 *
 * Invariant: the files are written at the end, after the lock was released, and
 * whether that succeeds does not change the run or its exit code. If nxlock was
 * killed, the watchdog writes them.
 */
#ifndef NXLOCK_CLI_REPORT_METRICS_H
#define NXLOCK_CLI_REPORT_METRICS_H

#include <nxlock.h>

#include "cli/args.h"

/* With --metrics, has EVENT_ENDED write the files; call it before there is a
 * watchdog. args, and the client that has the lock, must outlive that event. */
void metrics_begin(const struct args *args, nxl_client *client);

#endif
