/* SPDX-License-Identifier: MIT */
/*
 * Records the outcome of the work of once.
 */
#ifndef NXLOCK_CLI_ONCE_VERDICT_H
#define NXLOCK_CLI_ONCE_VERDICT_H

#include <stddef.h>

#include "cli/run/session.h"

struct verdict {
    int kind;         /* an enum nxl_once_state */
    int code;         /* the exit code that is kept with it */
    const char *data; /* the result; NULL: none, or it is not kept */
    size_t length;    /* of the result, or NXL_ONCE_NOT_KEPT */
};

/* Tells the server, again and again until --keep-trying is over or a signal
 * arrives. Returns a result of nxl_once_tell(); one other than NXL_OK was
 * reported. */
int verdict_tell(struct session *session, const struct verdict *verdict);

#endif
