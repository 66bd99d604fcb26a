/* SPDX-License-Identifier: MIT */
/*
 * One JSON object on one line.
 */
#ifndef NXLOCK_CLI_JSON_H
#define NXLOCK_CLI_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    size_t members;
};

void json_begin(struct json *json, FILE *out);
/* Foreign bytes: what is not UTF-8 becomes U+FFFD. */
void json_text(
    struct json *json, const char *name, const char *text, size_t length);
void json_number(struct json *json, const char *name, int64_t number);
void json_true(struct json *json, const char *name);
void json_null(struct json *json, const char *name);
void json_end(struct json *json);

#endif
