/* SPDX-License-Identifier: MIT */
/*
 * What once does with a record without running anything: show, confirm and
 * forget.
 */
#ifndef NXLOCK_CLI_ONCE_ONCE_RECORD_H
#define NXLOCK_CLI_ONCE_ONCE_RECORD_H

#include "cli/args.h"

/* Without --fingerprint, the record may have any. Returns
 * the exit code. */
int once_record(const struct args *args);

#endif
