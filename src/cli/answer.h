/* SPDX-License-Identifier: MIT */
/*
 * Reads the values in a server's answer.
 *
 * Invariant: what is not a whole number within the bounds is no number; a
 * server, or a peer that only looks like one, may answer anything.
 */
#ifndef NXLOCK_CLI_ANSWER_H
#define NXLOCK_CLI_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/private.h"
#include "base/slice.h"

/* Numbers of Redis's sorted sets and scripts are exact up to this. */
#define EXACT_MAX (INT64_C(1) << 53)

/* Reads the whole text as a decimal number from -most to most. */
bool number_read(const char *text, int64_t most, int64_t *number);

/* The same of value item of the answer, which may be nil or missing. */
bool answer_number(
    const struct answer *answer, size_t item, int64_t most, int64_t *number);

/* Value item of the answer; its data is NULL if it is nil or missing. */
struct slice answer_slice(const struct answer *answer, size_t item);

#endif
