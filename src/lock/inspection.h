/* SPDX-License-Identifier: MIT */
/* What an inspection finds: the value at each server, and the one that is
 * reported. */
#ifndef NXLOCK_LOCK_INSPECTION_H
#define NXLOCK_LOCK_INSPECTION_H

#include <nxlock.h>

#include "client/operation.h"

struct inspection {
    nxl_holder *chosen; /* the one of those below to report; NULL: none yet */
    int64_t left_ms;    /* how long a majority keeps that one */
    /* With one server: all holders, as verb.values has them; else NULL. */
    struct reply_values *listed;
    nxl_holder
        *by_server[]; /* one a server; NULL before it first shows a value */
};

/* For this many servers. NULL: out of memory. */
struct inspection *inspection_new(unsigned servers);
void inspection_free(struct inspection *found, unsigned servers);

/* Stores what a server has. ours: it is the value of the present lease. False:
 * out of memory. */
bool inspection_note(struct inspection *found, unsigned server,
    const struct outcome *outcome, bool ours);

/* Makes room for the list of all holders. False: out of memory. */
bool inspection_list(struct inspection *found);

/* Chooses the value to report: the one that most servers have. notes: of the
 * inspection's operation, which must have found a holder. */
void inspection_choose(
    struct inspection *found, const struct note *notes, unsigned servers);

#endif
