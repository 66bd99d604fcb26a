/* SPDX-License-Identifier: MIT */
/*
 * --check of once: asks a command whether work that is in doubt was done.
 */
#ifndef NXLOCK_CLI_ONCE_ONCE_CHECK_H
#define NXLOCK_CLI_ONCE_ONCE_CHECK_H

#include "cli/once/capture.h"
#include "cli/run/environ.h"

enum checked {
    CHECKED_UNKNOWN, /* it did not say, which was reported */
    CHECKED_DONE,    /* yes */
    CHECKED_NOT_DONE /* no */
};

/* Runs --check under the session's lock. *capture gets what it printed; the
 * caller closes it in any case. After CHECKED_DONE *from is where the result
 * begins, behind the first line. */
enum checked once_check(struct session *session, const struct attempt *attempt,
    struct capture *capture, size_t *from);

#endif
