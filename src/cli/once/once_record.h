/* SPDX-License-Identifier: MIT */
/*
 * What once does to a record without running anything: --show, --forget and
 * --confirm.
 */
#ifndef NXLOCK_CLI_ONCE_ONCE_RECORD_H
#define NXLOCK_CLI_ONCE_ONCE_RECORD_H

#include "cli/args.h"

/* Without --fingerprint, the record may have any. Returns
 * the exit code. */
int once_record(const struct args *args);

#endif
