/* SPDX-License-Identifier: MIT */
/* Unix times as people and programs read them, in UTC. */
#ifndef NXLOCK_CLI_REPORT_DATE_H
#define NXLOCK_CLI_REPORT_DATE_H

#include <stdint.h>

/* Writes a unix time as "2026-11-22 07:30:12 UTC" or, for programs, as in RFC
 * 3339; "" if there is no such date. Returns out, of DATE_ROOM bytes. */
#define DATE_ROOM 40
const char *date_words(char *out, int64_t unix_s);
const char *date_rfc3339(char *out, int64_t unix_s);

#endif
