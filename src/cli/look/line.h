/* SPDX-License-Identifier: MIT */
/*
 * Who waits in line for a lock: read from the line's key, which has the waiters
 * in order. Only a lock on one server has a line.
 */
#ifndef NXLOCK_CLI_LOOK_LINE_H
#define NXLOCK_CLI_LOOK_LINE_H

#include "cli/report/json.h"
#include "cli/run/session.h"

#define LINE_SHOWN 20

struct line_waiter {
    nxl_holder who;  /* its token, as if it held the lock */
    int64_t seen_ms; /* how long ago it last asked for the lock */
    bool dead;       /* longer ago than it said it would: it is passed over */
};

struct line {
    size_t count; /* waiters, those that are not in the list too */
    size_t dead;  /* of the first thousand */
    size_t shown; /* in the list */
    struct line_waiter list[LINE_SHOWN];
    char unknown[256]; /* why the line is not known; "": it is */
};

/* Reads the line of the session's lock, which is empty if there are several
 * servers. Blocks for the timeout of a few requests. */
void line_read(struct session *session, struct line *line);

/* Writes ", 3 waiting" into out, of LINE_WORDS bytes; "" if nobody waits, or
 * the line is unknown. Returns out. */
#define LINE_WORDS 48
const char *line_words(char *out, const struct line *line);

/* How many wait, not counting the dead among the first thousand. */
size_t line_waiting(const struct line *line);

/* Prints "  line: 3 waiting" and a row for each of the first waiters, or why
 * the line is unknown; nothing if it is empty. */
void line_print(const struct line *line);

/* Writes the line as members. */
void line_json(struct json *json, const struct line *line);

/* Writes "; waits by polling (poll=1)" into out, of LINE_POLLS bytes; "" if
 * the session's lock waits in line, as far as is known. No I/O. Returns out. */
#define LINE_POLLS 528
const char *line_polls(char *out, const struct session *session);

#endif
