/* SPDX-License-Identifier: MIT */
/* What an inspection finds, from several servers to one answer. */
#ifndef NXLOCK_API_INSPECTION_H
#define NXLOCK_API_INSPECTION_H

#include <nxlock.h>

#include "client/operation.h"

struct inspection {
    nxl_holder *chosen; /* one of those below; NULL: none was made yet */
    int64_t left_ms;    /* how long a majority keeps that one */
    nxl_holder *at[];   /* one a server; NULL before it first shows a value */
};

/* For so many servers. NULL: no memory. */
struct inspection *inspection_new(unsigned servers);
void inspection_free(struct inspection *found, unsigned servers);

/* A server showed what it has. ours: it is the value of the present lease.
 * False: no memory. */
bool inspection_note(struct inspection *found, unsigned server,
    const struct outcome *outcome, bool ours);

/* The name is held: chooses the value that most servers have. notes are those
 * of the inspection's operation. */
void inspection_choose(
    struct inspection *found, const struct note *notes, unsigned servers);

#endif
