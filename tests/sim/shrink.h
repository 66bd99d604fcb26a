/* SPDX-License-Identifier: MIT */
/*
 * A failing world made small: whatever can be left out of it, so that it still
 * breaks the same invariant in the same way, is left out.
 */
#ifndef NXLOCK_SIM_SHRINK_H
#define NXLOCK_SIM_SHRINK_H

#include "sim/world.h"

/* The same invariant, and the same sentence but for the numbers in it. */
bool same_failure(const struct report *one, const struct report *other);

/* Of options, with which an invariant breaks: they become those of the small
 * world, whose events are kept. False: it cannot be made small, and options
 * are of no use any more. */
bool shrink(struct options *options, struct events *kept);

/* "T17" or "c1.0#3"; and back, false: it is none. */
void event_print(uint64_t id, FILE *out);
bool event_parse(const char *text, size_t len, uint64_t *id);

#endif
