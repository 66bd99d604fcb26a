/* SPDX-License-Identifier: MIT */
/*
 * Reads the record of work that must be done once, as the scripts begin.lua and
 * tell.lua write it. Its first line is
 *
 *   once1 STATE TOKEN FENCE ATTEMPT DOUBTS FIRST SINCE ENDED CODE LATE KEEP
 *   FINGERPRINT SIZE
 *
 * in one line, with a blank between two words. STATE is begun, doubt, done or
 * failed; FINGERPRINT is "-", or "=" and the fingerprint; times are Unix times
 * in ms, 0 if it has not happened yet; SIZE is that of the result, which
 * follows the line, or -1 if it was too long to be kept. docs/wire.md explains
 * the rest.
 *
 * Invariant: what is read points into the line; a line that is not exactly of
 * this form is no record.
 */
#ifndef NXLOCK_WIRE_RECORD_H
#define NXLOCK_WIRE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "model/verb.h"

#define FINGERPRINT_MAX 128

struct record {
    enum once_state state;
    struct slice token; /* of the attempt that it is about */
    uint64_t fence;
    int64_t attempt, doubts, late;
    int64_t first_ms, since_ms, ended_ms, keep_ms;
    int code;
    struct slice fingerprint; /* empty: none */
    int64_t size;             /* of the result; -1: it was not kept */
};

/* One word of printable ASCII, of at most FINGERPRINT_MAX bytes? */
bool fingerprint_valid(const char *word);

/* line: without the newline at its end. */
bool record_parse(struct slice line, struct record *record);

/* The word for a state in a record: "begun", "doubt". */
const char *record_state_word(enum once_state state);

/* The same for messages: "begun", "in doubt". */
const char *record_state_shown(enum once_state state);

#endif
