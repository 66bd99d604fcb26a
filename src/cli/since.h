/* SPDX-License-Identifier: MIT */
/*
 * Since when a lock is held, by the server's clock.
 */
#ifndef NXLOCK_CLI_SINCE_H
#define NXLOCK_CLI_SINCE_H

#include "cli/session.h"

struct since {
    int64_t at_s;      /* unix time; 0: it is not known */
    char unknown[256]; /* why not */
};

/* Finds out since when the lock is held that an inspection of the session's
 * lock has shown. Blocks for the timeout of a few requests. */
void since_find(
    struct session *session, const nxl_holder *holder, struct since *since);

/* Writes the time as "2026-11-22 07:30:12 UTC" or, for programs, as in RFC
 * 3339. Returns out, of SINCE_ROOM bytes. */
#define SINCE_ROOM 40
const char *since_words(char *out, const struct since *since);
const char *since_rfc3339(char *out, const struct since *since);

#endif
