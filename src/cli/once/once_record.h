/* SPDX-License-Identifier: MIT */
/*
 * What once does with a record without running anything: show, confirm and
 * forget.
 */
#ifndef NXLOCK_CLI_ONCE_ONCE_RECORD_H
#define NXLOCK_CLI_ONCE_ONCE_RECORD_H

#include "cli/run/session.h"

struct once_view {
    struct session session;
    nxl_record record;
    bool in_progress; /* the lock is held by the record's attempt */
};

/* Reads the record of the session's lock by the blocking API. Returns a result
 * of nxl_once_begin(). */
int once_find(struct once_view *view);

/* Without --fingerprint, the record may have any. Returns
 * the exit code. */
int once_record(const struct args *args);

#endif
