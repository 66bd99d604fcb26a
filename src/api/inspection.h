/* SPDX-License-Identifier: MIT */
/* What an inspection finds, from several servers to one answer. */
#ifndef NXLOCK_API_INSPECTION_H
#define NXLOCK_API_INSPECTION_H

#include <nxlock.h>

#include "client/operation.h"

struct inspection {
    nxl_holder chosen; /* size 0: none was made yet */
    nxl_holder at[];   /* one a server */
};

/* For so many servers. NULL: no memory. free() it. */
struct inspection *inspection_new(unsigned servers);

/* A server showed what it has. ours: it is the value of the present lease. */
void inspection_note(struct inspection *found, unsigned server,
    const struct outcome *outcome, bool ours);

/* The name is held: chooses the value that most servers have. notes are those
 * of the inspection's operation. */
void inspection_choose(
    struct inspection *found, const struct note *notes, unsigned servers);

#endif
