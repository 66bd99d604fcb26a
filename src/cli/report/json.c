/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON objects, each followed by a newline.
 *
 * Invariant: an object is valid JSON in valid UTF-8 (RFC 8259), whatever bytes
 * the names and values consist of.
 */
#include "cli/report/json.h"

#include <inttypes.h>
#include <string.h>

#include "cli/report/utf8.h"

void json_begin(struct json *json, FILE *out)
{
    json->out = out;
    json->members = 0;
}

static void put_string(FILE *out, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;

    putc('"', out);
    while (length > 0) {
        size_t size = utf8_length((const char *)at, length);
        if (size == 0) {
            fputs("\\ufffd", out);
            size = 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at < ' ' || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else if (*at == 0xc2 && at[1] < 0xa0) { /* C1 */
            fprintf(out, "\\u%04x", at[1]);
        } else {
            fwrite(at, 1, size, out);
        }
        at += size;
        length -= size;
    }
    putc('"', out);
}

static void begin_member(struct json *json, const char *name)
{
    fprintf(json->out, "%s\"%s\":", json->members++ == 0 ? "{" : ",", name);
}

void json_text(
    struct json *json, const char *name, const char *text, size_t length)
{
    begin_member(json, name);
    put_string(json->out, text, length);
}

void json_string(struct json *json, const char *name, const char *text)
{
    if (text)
        json_text(json, name, text, strlen(text));
}

void json_number(struct json *json, const char *name, int64_t number)
{
    begin_member(json, name);
    fprintf(json->out, "%" PRId64, number);
}

void json_true(struct json *json, const char *name)
{
    begin_member(json, name);
    fputs("true", json->out);
}

void json_null(struct json *json, const char *name)
{
    begin_member(json, name);
    fputs("null", json->out);
}

void json_end(struct json *json)
{
    fputs(json->members == 0 ? "{}\n" : "}\n", json->out);
}

void json_list_begin(struct json *json, const char *name)
{
    begin_member(json, name);
    putc('[', json->out);
}

void json_item(struct json *list, struct json *item, bool first)
{
    if (!first)
        putc(',', list->out);
    json_begin(item, list->out);
}

void json_item_end(struct json *item)
{
    fputs(item->members == 0 ? "{}" : "}", item->out);
}

void json_list_end(struct json *json)
{
    putc(']', json->out);
}
