/* SPDX-License-Identifier: MIT */
/*
 * JSON objects, each followed by a newline.
 */
#ifndef NXLOCK_CLI_REPORT_JSON_H
#define NXLOCK_CLI_REPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The member "v" of every object that is printed with --json or --log json.
 * Members may be added; it is raised when one changes its meaning. */
#define JSON_VERSION 1

struct json {
    FILE *out;
    size_t members;
};

void json_begin(struct json *json, FILE *out);
/* text may have any bytes: what is not UTF-8 becomes U+FFFD. */
void json_text(
    struct json *json, const char *name, const char *text, size_t length);
/* The same of a zero-terminated text; NULL: there is no such member. */
void json_string(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, int64_t number);
void json_true(struct json *json, const char *name);
void json_null(struct json *json, const char *name);
void json_end(struct json *json);

/* A member that is a list of objects: json_list_begin(), for each object
 * json_item(), its members and json_item_end(), then json_list_end(). */
void json_list_begin(struct json *json, const char *name);
void json_item(struct json *list, struct json *item, bool first);
void json_item_end(struct json *item);
void json_list_end(struct json *json);

#endif
