/* SPDX-License-Identifier: MIT */
/*
 * Durations as people write and read them.
 */
#ifndef NXLOCK_CLI_REPORT_DURATION_H
#define NXLOCK_CLI_REPORT_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#define DURATION_ROOM 32

/* "500ms", "30s", "10m", "2h", "1d", "1.5h"; a bare number is seconds. */
bool duration_parse(const char *text, int64_t *ms);

/* Writes a duration that duration_parse() reads back exactly: a whole number
 * below 120, or else a number with one decimal, in the largest unit that allows
 * it; otherwise seconds: "2d", "90s", "21.6h", "12.345s". out has DURATION_ROOM
 * bytes. */
const char *duration_text(char *out, int64_t ms);

/* Rounds ms down, or up, to whole minutes or one decimal of another unit: up,
 * 12264 becomes 12300. For advice such as "use 12.3s or more". */
int64_t duration_round(int64_t ms, bool up);

/* Writes what is left of a lease, rounded up, to whole seconds at least: "4s",
 * "21s", "2h". out has DURATION_ROOM bytes. */
const char *duration_left(char *out, int64_t ms);

/* Writes how long something took, rounded down: "345ms", "4.2s", "12m", "3.1h".
 * out has DURATION_ROOM bytes. */
const char *duration_rough(char *out, int64_t ms);

#endif
