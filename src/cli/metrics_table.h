/* SPDX-License-Identifier: MIT */
/*
 * The metrics of any number of locks, as numbers and in the text format of
 * Prometheus, which this writes and reads back.
 *
 * Invariant: only a text that metrics_print() could have written is read, to
 * its last line. One that was cut off, or written by another program, is not.
 */
#ifndef NXLOCK_CLI_METRICS_TABLE_H
#define NXLOCK_CLI_METRICS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/event.h"

/* Why a lock was lost. The first four are those of enum nxl_loss, from 1. */
enum loss_reason {
    LOST_EXPIRED,
    LOST_REMOVED,
    LOST_TAKEN,
    LOST_UNREACHABLE,
    LOST_LATE, /* the library had not noticed it when CMD ended */
    LOSS_REASONS
};

/* The numbers of one lock. Times are in milliseconds. */
enum metric {
    METRIC_SUCCESS,  /* a Unix time; 0: never */
    METRIC_SKIP,     /* the same */
    METRIC_DURATION, /* of CMD, the last time it was started */
    METRIC_SLACK,    /* the least time left of the lease at a renewal */
    METRIC_RUNS,     /* one for each enum result */
    METRIC_LOSSES = METRIC_RUNS + RESULTS, /* one for each enum loss_reason */
    METRIC_ATTEMPTS = METRIC_LOSSES + LOSS_REASONS,
    METRIC_WAITS,
    METRIC_WAIT_TIME,
    METRIC_HOLD_TIME,
    METRIC_RENEWALS,
    METRIC_FAILURES, /* renewals that failed and were tried again */
    METRIC_DOWN,     /* how often no server could decide */
    METRICS
};

struct metrics_row {
    char *name; /* of the lock, as it is written in the text */
    int64_t value[METRICS];
};

/* More names are a mistake: a monitoring system keeps each of them for long. */
#define METRICS_NAMES 1000

struct metrics_table {
    struct metrics_row *rows;
    size_t count;
};

/* Finds the row of a lock, or adds it, with zeros. NULL: there are
 * METRICS_NAMES others (errno is E2BIG), or no memory (ENOMEM). */
struct metrics_row *metrics_row(struct metrics_table *table, const char *name);

/* Reads a zero-terminated text, which is changed. An empty one has no rows.
 * Returns 0; or the number of the first line that is not of this format; or -1:
 * no memory. The caller calls metrics_free() in every case. */
long metrics_read(struct metrics_table *table, char *text);

/* Writes the whole text; ferror(out) tells whether that failed. */
void metrics_print(const struct metrics_table *table, FILE *out);
void metrics_free(struct metrics_table *table);

#endif
