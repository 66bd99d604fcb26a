/* SPDX-License-Identifier: MIT */
/* The records of nxlock once, as list finds them on a server. */
#ifndef NXLOCK_CLI_FOUND_RECORD_H
#define NXLOCK_CLI_FOUND_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/json.h"

#define RECORD_LINE "1023" /* the first line ends before this byte */
#define RECORD_TOKEN 192

struct found_record {
    char state[8];            /* begun, doubt, done or failed */
    char token[RECORD_TOKEN]; /* of the attempt that it is about */
    long long attempt, doubts, since_ms, ended_ms;
    int code; /* once it has ended */
};

/* Is the key that of a record of a lock below prefix? *name is the lock's name
 * then, a part of key. */
bool found_record_name(const char *prefix, const char *key, size_t length,
    const char **name, size_t *name_length);

/* Reads the first line of a record; false: it is none. */
bool found_record_parse(const char *line, struct found_record *record);

/* Has the work begun, and its outcome was never reported? */
bool found_record_begun(const struct found_record *record);

/* Is its outcome known? Then the record expires. */
bool found_record_ended(const struct found_record *record);

/* Writes what it says as members. */
void found_record_json(struct json *json, const struct found_record *record);

#endif
