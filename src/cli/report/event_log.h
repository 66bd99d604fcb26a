/* SPDX-License-Identifier: MIT */
/*
 * --log: writes one entry per event to syslog, a file or standard error.
 */
#ifndef NXLOCK_CLI_REPORT_EVENT_LOG_H
#define NXLOCK_CLI_REPORT_EVENT_LOG_H

#include <stdbool.h>

#include "cli/args.h"

/* Opens what --log names and adds it to the sinks of events; does nothing
 * without --log. Returns 0; or an exit code, after a message, if a file cannot
 * be opened. A log that cannot be written later is reported once, and the run
 * continues. Call event_begin() before. */
int event_log_open(const struct args *args);

/* The descriptor that the log is written to, for a process that closes all
 * others; -1: there is none. It is closed on exec. */
int event_log_fd(void);

/* Drops what the log has not taken of this process. False: it has all. */
bool event_log_forget(void);

#endif
